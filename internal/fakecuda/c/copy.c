// copy.c: what copies and memsets do when their turn comes.
#include "fake.h"

int host_poisoned(uint64_t ptr);

// Planned ranges bind copies as they bind kernels; the allocation itself was checked when the copy was enqueued, but may be gone.
static alloc *span(op *o, uint64_t ptr, uint64_t bytes, int write) {
	char a[512], c[256];
	alloc *m = mem_find(ptr);
	if (!m || ptr - m->base + bytes > m->bytes) {
		COUNT(outOfBounds)++;
		report("out of bounds: %s %s %llu bytes at %s", op_text(o->seq, a, sizeof a), write ? "writes" : "reads", (unsigned long long)bytes, mem_text(m ? m->base + m->bytes : ptr, c, sizeof c));
		F_.sticky = ERR_ILLEGAL_ADDRESS;
		return 0;
	}
	int hint = 0;
	if (m->kind <= MEM_PINNED && !range_allowed(o, ptr, bytes, write, &hint)) {
		COUNT(outOfRange)++;
		report("outside its buffers: %s %s %llu bytes at %s", op_text(o->seq, a, sizeof a), write ? "writes" : "reads", (unsigned long long)bytes, mem_text(ptr, c, sizeof c));
	}
	return m;
}

// Before and after the device writes host memory: pending copies from there were summed when they were enqueued.
static void resum(uint64_t ptr, uint64_t bytes, int after) {
	for (int i = 1; i < STREAMS; i++)
		for (op *o = F_.streams[i] ? F_.streams[i]->head : 0; o; o = o->next) {
			if (!o->summed || o->src + o->bytes <= ptr || ptr + bytes <= o->src) continue;
			if (after) o->sum = host_sum(o->src, o->bytes);
			else if (o->sum != host_sum(o->src, o->bytes)) o->summed = 2; // reported when its turn comes
		}
}

static void check_sum(op *o) {
	if (!o->summed || (o->summed == 1 && o->sum == host_sum(o->src, o->bytes))) return;
	char a[512], c[256];
	COUNT(hostRaces)++;
	report("host race: the host changed %s between the call of %s and the copy", mem_text(o->src, c, sizeof c), op_text(o->seq, a, sizeof a));
}

// What a copy from host memory leaves unwritten: bytes that hold their poison still.
static void init_from_host(const alloc *s, uint64_t src, uint8_t *dst, uint64_t bytes) {
	memset(dst, 1, bytes);
	if (s && s->kind == MEM_PINNED)
		for (uint64_t i = 0; i < bytes; i++)
			if (!s->init[src - s->base + i] && host_poisoned(src + i) && ((src + i) | 7) < s->base + s->bytes) dst[i] = 0;
}

void op_run_copy(op *o) {
	racememo memo = {0};
	alloc *d = 0, *s = 0;
	if (o->bytes == 0) return;
	int deviceSrc = o->dir == DIR_D2H || o->dir == DIR_D2D, deviceDst = o->dir == DIR_H2D || o->dir == DIR_D2D;
	if (deviceSrc || mem_find(o->src)) {
		if (!(s = span(o, o->src, o->bytes, 0))) return;
		race_range(o, s, o->src, o->bytes, 0, &memo);
	}
	if (deviceDst || mem_find(o->dst)) {
		if (!(d = span(o, o->dst, o->bytes, 1))) return;
		race_range(o, d, o->dst, o->bytes, 1, &memo);
	}
	const named *n = mem_name(o->dst);
	if (n && (n->flags & 1) && o->dir == DIR_D2D) {
		char a[512];
		COUNT(readOnlyWrites)++;
		report("write to read-only memory: %s writes %s", op_text(o->seq, a, sizeof a), n->name);
	}
	check_sum(o);
	if (d && !deviceDst) resum(o->dst, o->bytes, 0);
	memmove((void *)o->dst, (void *)o->src, o->bytes);
	if (d && !deviceDst) resum(o->dst, o->bytes, 1);
	if (deviceSrc && s) {
		const uint8_t *in = s->init + (o->src - s->base);
		const uint8_t *hole = memchr(in, 0, o->bytes);
		if (hole && o->dir == DIR_D2H && SET(checkLevel) > 0) uninitialised(o, o->src + (uint64_t)(hole - in), 0, 0);
		if (d) memcpy(d->init + (o->dst - d->base), in, o->bytes);
	} else if (d) {
		init_from_host(s, o->src, d->init + (o->dst - d->base), o->bytes);
	}
	static const int counts[] = {COUNTER_bytesH2D, COUNTER_bytesD2H, COUNTER_bytesD2D, COUNTER_bytesH2H};
	F_.counters[counts[o->dir]] += (int64_t)o->bytes;
}

void op_run_set(op *o) {
	racememo memo = {0};
	if (o->bytes == 0) return;
	alloc *d = span(o, o->dst, o->bytes, 1);
	if (!d) return;
	race_range(o, d, o->dst, o->bytes, 1, &memo);
	if (o->kind == OP_POISON) {
		mem_poison(d, o->dst, o->bytes);
		return;
	}
	for (uint64_t i = 0; i < o->bytes; i++) ((uint8_t *)o->dst)[i] = (uint8_t)(o->value >> (8 * (i % (uint64_t)o->unit)));
	memset(d->init + (o->dst - d->base), 1, o->bytes);
}
