// race.c: operations against operations. Every 16 bytes remember their last writer and up to three readers; an access that is not ordered
// after them is a race, whether or not it did harm this time. A fourth reader that nothing orders pushes out the oldest; that is counted
// (readersForgotten) because a later write might then go unreported. The two workers of a launch work on cells without locks: they write the same numbers,
// so what they overwrite of each other is equal.
#include "fake.h"
#include <stdio.h>

int ordered(const op *o, uint32_t seq, racememo *memo) {
	if (seq == memo->okSeq || seq == o->seq) return 1;
	const rec *r = &F_.recs[seq];
	if (r->clock > o->vc[r->stream]) return 0;
	memo->okSeq = seq;
	return 1;
}

// One report for each pair of operations; every cell counts.
static void conflict(op *o, uint32_t other, uint64_t ptr, int write, int otherWrote) {
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	static uint32_t lastA[64], lastB[64];
	pthread_mutex_lock(&m);
	COUNT(races)++;
	uint32_t h = (o->seq * 31 + other) & 63;
	int known = lastA[h] == o->seq && lastB[h] == other;
	lastA[h] = o->seq, lastB[h] = other;
	pthread_mutex_unlock(&m);
	if (known) return;
	char a[512], b[512], c[256];
	report("race: %s %s %s, which %s %s and nothing orders the two", op_text(o->seq, a, sizeof a), write ? "writes" : "reads", mem_text(ptr, c, sizeof c),
		op_text(other, b, sizeof b), otherWrote ? "writes" : "reads");
}

static void cell_read(op *o, vcell *c, uint64_t ptr, racememo *memo) {
	if (c->r[0] == o->seq) return;
	if (c->w && !ordered(o, c->w, memo)) conflict(o, c->w, ptr, 0, 1);
	int slot = -1;
	for (int i = 0; i < 3; i++) {
		if (c->r[i] == o->seq) return;
		if (slot < 0 && (c->r[i] == 0 || ordered(o, c->r[i], memo))) slot = i;
	}
	if (slot < 0) {
		COUNT(readersForgotten)++;
		slot = 2;
	}
	c->r[slot] = o->seq; // both workers of a launch choose the same slot and write the same number
}

static void cell_write(op *o, vcell *c, uint64_t ptr, racememo *memo) {
	if (c->w == o->seq && !c->r[0]) return;
	if (c->w && !ordered(o, c->w, memo)) conflict(o, c->w, ptr, 1, 1);
	for (int i = 0; i < 3; i++)
		if (c->r[i] && !ordered(o, c->r[i], memo)) conflict(o, c->r[i], ptr, 1, 0);
	*c = (vcell){.w = o->seq}; // whoever comes after this write comes after those readers
}

// race_range checks and records an access of a stretch that lies in one allocation.
void race_range(op *o, alloc *a, uint64_t ptr, uint64_t bytes, int write, racememo *memo) {
	if (SET(checkLevel) < 1 || bytes == 0) return;
	uint64_t first = (ptr - a->base) / 16, last = (ptr - a->base + bytes - 1) / 16;
	vcell *c = a->vc + first;
	if (write)
		for (uint64_t i = first; i <= last; i++, c++) cell_write(o, c, a->base + 16 * i, memo);
	else
		for (uint64_t i = first; i <= last; i++, c++) cell_read(o, c, a->base + 16 * i, memo);
}

// range_allowed tells whether an access lies in one of the ranges that fakeExpect gave, with that kind of access. hint remembers which.
int range_allowed(const op *o, uint64_t ptr, uint64_t bytes, int write, int *hint) {
	if (o->nranges < 0) return 1;
	uint32_t want = write ? 2 : 1;
	for (int k = 0; k < o->nranges; k++) {
		int i = (k + *hint) % o->nranges;
		const fakeRange *r = &o->ranges[i];
		if ((r->access & want) && ptr >= r->ptr && ptr - r->ptr + bytes <= r->bytes) {
			*hint = i;
			return 1;
		}
	}
	return 0;
}

// range_text says in which of the operation's ranges an address lies; empty: in none, or access is no fault.
const char *range_text(const op *o, uint64_t ptr, uint64_t bytes, int write, char *buf, size_t n) {
	int hint = 0;
	*buf = 0;
	if (range_allowed(o, ptr, bytes, write, &hint)) return buf;
	for (int i = 0; i < o->nranges; i++) {
		const fakeRange *r = &o->ranges[i];
		if (ptr >= r->ptr && ptr < r->ptr + r->bytes) snprintf(buf, n, ", in %s, which it may not %s", r->name ? r->name : "a range", write ? "write" : "read");
	}
	return buf;
}

// uninitialised reports once an operation; at is the place in a kernel, empty for copies.
void uninitialised(op *o, uint64_t ptr, int shared, const char *at) {
	static uint32_t last;
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&m);
	COUNT(uninitialised)++;
	int known = last == o->seq;
	last = o->seq;
	pthread_mutex_unlock(&m);
	if (known) return;
	char a[512], c[256];
	if (shared) snprintf(c, sizeof c, "shared byte %llu", (unsigned long long)ptr);
	else mem_text(ptr, c, sizeof c);
	report("uninitialised read: %s reads %s, which nothing has written", at ? at : op_text(o->seq, a, sizeof a), c);
}
