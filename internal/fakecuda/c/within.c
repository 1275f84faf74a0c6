// within.c: threads against threads of one launch.
//
// Every 4 bytes remember who wrote and who read them last: thread, its warp's clock, and which of the bytes. A warp's clock advances at barriers
// and at bar.warp.sync; at a block barrier the warps learn each other's clocks. Two accesses of different threads are ordered if the later one's
// warp knows the earlier one's clock. Blocks of one launch are never ordered, unless the earlier one fenced and then touched an atomic
// before the later one touched an atomic: the pattern of a reduction's last block.
//
// Not seen: a conflict with a reader that a later reader of the same warp covered and that had synchronised less, which takes partial warp
// synchronisation; two blocks that touch a place in the same instant on the two workers (set workers to 1 to exclude it); different bytes of one cell
// remember only the last block that wrote, and the last thread that read bytes of their own.
#include "warp.h"
#include <stdio.h>

#define CLK 0x1ffffu // 17 bits; a block that synchronises more often is no longer checked

static uint32_t entry(uint32_t thread, uint32_t mask, int atomic, uint32_t clk) { return thread << 22 | mask << 18 | (uint32_t)atomic << 17 | clk; }
static uint32_t mask_of(uint32_t e) { return e >> 18 & 15; }
static int atomic_of(uint32_t e) { return e >> 17 & 1; }

void warp_tick(blockctx *b, ptx_warp *w) {
	if (b->clk[w->warp] < CLK) b->clk[w->warp]++;
}

static int seen(const blockctx *b, const ptx_warp *w, uint32_t e, uint32_t thread) {
	uint32_t t = e >> 22, clk = e & CLK;
	if (t == thread) return 1;
	if (t >> 5 == w->warp) return clk < b->clk[w->warp];
	return clk <= b->vc[w->warp][t >> 5];
}

static void conflict(blockctx *b, ptx_warp *w, int shared, uint64_t ptr, uint32_t thread, int write, uint32_t other, uint32_t otherRun, int otherWrote) {
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	static uint32_t lastSeq;
	static int32_t lastLine;
	pthread_mutex_lock(&m);
	if (shared) COUNT(sharedRaces)++;
	else COUNT(launchRaces)++;
	int known = lastSeq == b->o->seq && lastLine == w->line;
	lastSeq = b->o->seq, lastLine = w->line;
	pthread_mutex_unlock(&m);
	if (known) return;
	char at[640], c[256];
	if (shared) snprintf(c, sizeof c, "shared byte %llu", (unsigned long long)ptr);
	else mem_text(ptr, c, sizeof c);
	if (otherRun != b->run)
		report("race between blocks: %s %s %s, which block %u %s in the same launch", where(w, thread, at, sizeof at), write ? "writes" : "reads", c, otherRun - b->job->base, otherWrote ? "writes" : "reads");
	else
		report("missing barrier: %s %s %s, which thread %u of the block %s without a barrier between", where(w, thread, at, sizeof at), write ? "writes" : "reads", c, other >> 22, otherWrote ? "writes" : "reads");
}

// Lanes of one instruction that store the same value to one place do no harm.
static int same_store(const ptx_warp *w, const blockctx *b, uint32_t e, const void *data, const void *mem, unsigned bytes) {
	return data && e >> 22 >> 5 == w->warp && (e & CLK) == b->clk[w->warp] && !memcmp(data, mem, bytes);
}

static uint32_t bytemask(uint64_t ptr, uint64_t end) { // of the 4 bytes at ptr & ~3
	uint64_t cell = ptr & ~3ull, stop = end < cell + 4 ? end : cell + 4;
	return (uint32_t)((1u << (stop - cell)) - 1) & ~((1u << (ptr - cell)) - 1);
}

// Two workers share the cells of global memory without a lock. An entry and the run that it belongs to are read and written as one, so a worker never sees one
// worker's entry with another one's run, which would be a race that is none (narrow elements of two blocks share a cell). An update that is overwritten
// between reading and writing is lost: at worst a race goes unseen.
typedef union {
	struct { uint32_t run, e; };
	uint64_t both;
} mark;

static mark take(const uint32_t *run) {
	mark m = {.both = __atomic_load_n((const uint64_t *)run, __ATOMIC_RELAXED)};
	return m;
}
static void put(uint32_t *run, uint32_t entry, uint32_t r) {
	mark m = {{r, entry}};
	__atomic_store_n((uint64_t *)run, m.both, __ATOMIC_RELAXED);
}

static int past(const blockctx *b, uint32_t run) { // an earlier block that released before this one acquired
	const job *j = b->job;
	uint32_t r = j->released ? j->released[run - j->base] : 0;
	return r && r <= b->acquired;
}

int within_global(blockctx *b, ptx_warp *w, alloc *a, uint64_t ptr, unsigned bytes, uint32_t thread, int write, int atomic, const void *data) {
	uint64_t end = ptr + bytes;
	uint32_t base = b->job->base, clk = b->clk[w->warp];
	if (clk >= CLK) return 0;
	bcell *c = a->bc + (ptr - (a->base & ~3ull)) / 4;
	for (uint64_t p = ptr; p < end; p = (p & ~3ull) + 4, c++) {
		uint32_t mask = ((uint32_t)p | bytes) & 3 ? bytemask(p, end) : 15;
		mark wr = take(&c->wrun), rd = take(&c->rrun);
		if (wr.run >= base && (mask & mask_of(wr.e)) && !(atomic && atomic_of(wr.e))) {
			if (wr.run != b->run) {
				if (!past(b, wr.run)) conflict(b, w, 0, p, thread, write, wr.e, wr.run, 1);
			} else if (!seen(b, w, wr.e, thread) && !(write && same_store(w, b, wr.e, data, (void *)ptr, bytes))) {
				conflict(b, w, 0, p, thread, write, wr.e, wr.run, 1);
			}
		}
		if (!write) {
			uint32_t old = mask_of(rd.e); // bytes of narrow elements beside this one belong to another reader: merged they would accuse it
			if (rd.run == b->run) put(&c->rrun, entry(thread, old & mask ? mask | old : mask, atomic_of(rd.e), clk), b->run);
			else if (rd.run < base || !(old & mask)) put(&c->rrun, entry(thread, mask, 0, clk), b->run);
			else if (!atomic_of(rd.e)) put(&c->rrun, rd.e | 1u << 17 | mask << 18, rd.run); // of a reader this bit says: other blocks as well
			continue;
		}
		if (rd.run >= base && (mask & mask_of(rd.e))) {
			int others = rd.run != b->run || atomic_of(rd.e);
			if (others && !(rd.run != b->run && past(b, rd.run))) conflict(b, w, 0, p, thread, 1, rd.e, rd.run != b->run ? rd.run : base, 0);
			else if (rd.run == b->run && !seen(b, w, rd.e, thread)) conflict(b, w, 0, p, thread, 1, rd.e, rd.run, 0);
		}
		uint32_t keep = wr.run == b->run && wr.e >> 22 == thread && (wr.e & CLK) == clk ? mask_of(wr.e) : 0;
		put(&c->wrun, entry(thread, mask | keep, atomic, clk), b->run);
	}
	return 0;
}

int within_shared(blockctx *b, ptx_warp *w, uint32_t off, unsigned bytes, uint32_t thread, int write, int atomic, const void *data) {
	uint32_t end = off + bytes, clk = b->clk[w->warp];
	if (clk >= CLK) return 0;
	scell *c = b->scells + off / 4;
	for (uint32_t p = off; p < end; p = (p & ~3u) + 4, c++) {
		uint32_t mask = (p | bytes) & 3 ? bytemask(p, end) : 15;
		if (!write && c->r[0] == entry(thread, 15, 0, clk)) continue; // noted already, and no write went unseen since: writers look at readers
		if (c->w && (mask & mask_of(c->w)) && !(atomic && atomic_of(c->w)) && !seen(b, w, c->w, thread) &&
			!(write && same_store(w, b, c->w, data, b->shared + off, bytes)))
			conflict(b, w, 1, p, thread, write, c->w, b->run, 1);
		if (!write) {
			if (c->r[0] && c->r[0] >> 27 != thread >> 5) c->r[1] = c->r[0]; // the other slot keeps another warp's reader
			uint32_t keep = c->r[0] >> 22 == thread && (c->r[0] & CLK) == clk ? mask_of(c->r[0]) : 0;
			c->r[0] = entry(thread, mask | keep, 0, clk);
			continue;
		}
		for (int i = 0; i < 2; i++)
			if (c->r[i] && (mask & mask_of(c->r[i])) && !seen(b, w, c->r[i], thread)) {
				conflict(b, w, 1, p, thread, 1, c->r[i], b->run, 0);
				break;
			}
		uint32_t keep = c->w >> 22 == thread && (c->w & CLK) == clk ? mask_of(c->w) : 0;
		c->w = entry(thread, mask | keep, atomic, clk);
	}
	return 0;
}
