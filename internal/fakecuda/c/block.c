// block.c: runs a launch block by block, warps of a block in turns from barrier to barrier.
//
// Blocks of kernels without atomics are shared between two threads: they cannot see one another, so the order cannot matter. A kernel that breaks this
// has a race, which is reported; only how often it is counted may then vary. With a seed the order of warps is shuffled.
#include "warp.h"
#include <stdlib.h>

// worker is what one executing thread keeps from block to block.
typedef struct worker {
	blockctx b;
	uint8_t *regs, *local;
	size_t regsBytes, localBytes, sharedCap;
	uint64_t flops, insts;
} worker;

static void *grow(void *p, size_t *cap, size_t want) {
	if (want <= *cap) return p;
	free(p);
	*cap = want;
	p = aligned_alloc(64, (want + 63) / 64 * 64);
	memset(p, 0, want);
	return p;
}

typedef struct { uint32_t count, arrived, vc[32]; int waiting, line; } barrier_; // waiting: mask of warps

// Everyone who is past the barrier knows what everyone who came to it knew.
static void release(blockctx *b, barrier_ *x, int *state) {
	for (int i = 0; i < b->nwarps; i++)
		if (x->waiting >> i & 1) {
			memcpy(b->vc[i], x->vc, sizeof x->vc);
			warp_tick(b, &b->warps[i]);
			state[i] = 0;
		}
	*x = (barrier_){0};
}

enum { RUNS, WAITS, GONE };

static int arrive(blockctx *b, ptx_warp *w, barrier_ *bars, int *state, const uint32_t *began) {
	if (w->bar_id > 15) return fault(w, w->live, ERR_LAUNCH_FAILED, COUNTER_divergent, "barrier %u: there are 16", w->bar_id);
	if (w->bar_mask != began[w->warp])
		return fault(w, w->bar_mask, ERR_LAUNCH_FAILED, COUNTER_divergent, "divergent barrier: lanes 0x%08x of 0x%08x reach it, %s", w->bar_mask, began[w->warp],
			w->bar_mask == w->live ? "the others have returned" : "the others are elsewhere");
	barrier_ *x = &bars[w->bar_id];
	uint32_t count = w->bar_count ? w->bar_count : (uint32_t)b->nwarps * 32;
	if (w->bar_count & 31) return fault(w, w->live, ERR_LAUNCH_FAILED, COUNTER_divergent, "barrier %u: %u threads are no multiple of 32", w->bar_id, w->bar_count);
	if (x->arrived && x->count != count) return fault(w, w->live, ERR_LAUNCH_FAILED, COUNTER_divergent, "barrier %u: this warp counts %u threads, another %u", w->bar_id, count, x->count);
	if (x->arrived && !w->bar_count && x->line != w->line)
		return fault(w, w->live, ERR_LAUNCH_FAILED, COUNTER_divergent, "divergent barrier: another warp waits at that of PTX line %d", x->line);
	x->count = count, x->line = w->line;
	x->arrived += 32;
	b->vc[w->warp][w->warp] = b->clk[w->warp];
	for (int i = 0; i < 32; i++)
		if (b->vc[w->warp][i] > x->vc[i]) x->vc[i] = b->vc[w->warp][i];
	if (w->bar_arrive) {
		warp_tick(b, w);
		state[w->warp] = RUNS;
	} else {
		x->waiting |= 1 << w->warp;
		state[w->warp] = WAITS;
	}
	if (x->arrived >= count) release(b, x, state);
	return 0;
}

static void start_warps(worker *k, uint32_t index) {
	blockctx *b = &k->b;
	const op *o = b->o;
	const ptx_entry *e = o->f->e;
	for (int i = 0; i < b->nwarps; i++) {
		ptx_warp *w = &b->warps[i];
		w->host = &warp_host, w->block = b, w->param = o->param;
		w->regs = k->regs + (size_t)i * ((e->regs_bytes + 63) / 64 * 64);
		w->local = k->local + (size_t)i * 32 * e->local_bytes;
		w->warp = (uint32_t)i, w->nwarps = (uint32_t)b->nwarps;
		uint32_t left = b->threads - 32 * (uint32_t)i;
		w->live = left >= 32 ? 0xffffffffu : (1u << left) - 1;
		w->ctaid[0] = index % o->grid[0], w->ctaid[1] = index / o->grid[0] % o->grid[1], w->ctaid[2] = index / o->grid[0] / o->grid[1];
		w->line = 0, w->insts = w->flops = 0, w->fuel = SET(maxBranches);
		memset(w->pc, 0, sizeof w->pc);
		for (int d = 0; d < 3; d++) w->ntid[d] = o->block[d], w->nctaid[d] = o->grid[d];
		for (uint32_t l = 0; l < 32; l++) {
			uint32_t t = 32 * (uint32_t)i + l;
			w->tid[0][l] = t % o->block[0], w->tid[1][l] = t / o->block[0] % o->block[1], w->tid[2][l] = t / o->block[0] / o->block[1];
		}
		b->copies[i].n = 0, b->copies[i].group = 0;
		b->clk[i] = 1;
	}
	memset(b->vc, 0, sizeof b->vc);
	if (e->local_bytes) memset(k->local, 0xff, (size_t)b->nwarps * 32 * e->local_bytes);
	memset(b->shared, 0xff, b->sharedBytes);
	memset(b->sinit, 0, b->sharedBytes);
	if (SET(checkLevel) >= 2) memset(b->scells, 0, (b->sharedBytes + 3) / 4 * sizeof(scell));
	b->hint = 0, b->fenced = 0, b->acquired = 0;
}

static void run_block(worker *k, uint32_t index) {
	blockctx *b = &k->b;
	b->index = index, b->run = b->job->base + index;
	start_warps(k, index);
	barrier_ bars[16] = {{0}};
	int state[32] = {0}, order[32];
	uint32_t began[32];
	for (int i = 0; i < b->nwarps; i++) order[i] = i, began[i] = b->warps[i].live;
	if (SET(seed)) {
		uint64_t z = (uint64_t)SET(seed) * 0x9e3779b97f4a7c15ull + (uint64_t)b->o->seq * 0x94d049bb133111ebull + index;
		for (int i = b->nwarps - 1; i > 0; i--) {
			z = (z ^ z >> 29) * 0xbf58476d1ce4e5b9ull;
			int j = (int)((z >> 33) % (uint64_t)(i + 1)), t = order[i];
			order[i] = order[j], order[j] = t;
		}
	}
	for (int gone = 0, moved = 1; gone < b->nwarps;) {
		if (!moved) { // nobody runs and somebody waits
			for (int i = 0; i < b->nwarps; i++)
				if (state[i] == WAITS) {
					fault(&b->warps[i], b->warps[i].live, ERR_LAUNCH_FAILED, COUNTER_divergent, "divergent barrier: waits for threads that returned or wait at another barrier");
					return;
				}
		}
		moved = 0;
		for (int n = 0; n < b->nwarps; n++) {
			ptx_warp *w = &b->warps[order[n]];
			if (state[w->warp] != RUNS) continue;
			moved = 1;
			switch (b->o->f->e->fn(w)) {
			case PTX_EXITED:
				state[w->warp] = GONE, gone++;
				k->flops += w->flops, k->insts += w->insts;
				break;
			case PTX_BARRIER:
				if (arrive(b, w, bars, state, began)) return;
				break;
			default:
				return;
			}
			if (__atomic_load_n(&b->job->fault, __ATOMIC_RELAXED)) return;
		}
	}
}

static void work(worker *k, job *j) {
	op *o = j->o;
	const ptx_entry *e = o->f->e;
	blockctx *b = &k->b;
	b->o = o, b->job = j, b->last = 0, b->moved = 0, b->memo = (racememo){0};
	b->threads = o->block[0] * o->block[1] * o->block[2];
	b->nwarps = (int)((b->threads + 31) / 32);
	b->sharedBytes = e->shared_bytes + o->dynamic;
	k->flops = k->insts = 0;
	if (!b->warps) b->warps = aligned_alloc(64, (32 * sizeof(ptx_warp) + 63) / 64 * 64);
	k->regs = grow(k->regs, &k->regsBytes, (size_t)b->nwarps * ((e->regs_bytes + 63) / 64 * 64));
	k->local = grow(k->local, &k->localBytes, (size_t)b->nwarps * 32 * e->local_bytes + 64);
	if (b->sharedBytes + 64 > k->sharedCap) {
		free(b->shared), free(b->sinit), free(b->scells);
		k->sharedCap = b->sharedBytes + 64;
		b->shared = aligned_alloc(128, (k->sharedCap + 127) / 128 * 128), b->sinit = malloc(k->sharedCap), b->scells = malloc((k->sharedCap / 4 + 1) * sizeof(scell));
	}
	for (;;) {
		uint32_t i = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED);
		if (i >= j->n || __atomic_load_n(&j->fault, __ATOMIC_RELAXED)) break;
		run_block(k, i);
	}
	__atomic_fetch_add(&j->flops, k->flops, __ATOMIC_RELAXED);
	__atomic_fetch_add(&j->moved, b->moved, __ATOMIC_RELAXED);
	__atomic_fetch_add(&j->insts, k->insts, __ATOMIC_RELAXED);
}

// The second thread sleeps between launches.
static struct { pthread_mutex_t m; pthread_cond_t c; job *j; int started, busy; } second = {.m = PTHREAD_MUTEX_INITIALIZER, .c = PTHREAD_COND_INITIALIZER};

static void *second_thread(void *arg) {
	(void)arg;
	static worker k;
	pthread_mutex_lock(&second.m);
	for (;;) {
		while (!second.j) pthread_cond_wait(&second.c, &second.m);
		job *j = second.j;
		second.j = 0;
		pthread_mutex_unlock(&second.m);
		work(&k, j);
		pthread_mutex_lock(&second.m);
		second.busy = 0;
		pthread_cond_broadcast(&second.c);
	}
	return 0;
}

void op_run_kernel(op *o) {
	static worker first;
	const ptx_entry *e = o->f->e;
	job j = {.o = o, .n = o->grid[0] * o->grid[1] * o->grid[2]};
	if (F_.runs > 0xffffffffu - j.n) F_.runs = 0;
	j.base = F_.runs + 1;
	F_.runs += j.n;
	if ((e->flags & (PTX_USES_FENCE | PTX_USES_ATOMIC)) == (PTX_USES_FENCE | PTX_USES_ATOMIC)) j.released = calloc(j.n, sizeof *j.released);
	int two = SET(workers) > 1 && j.n > 1 && !(e->flags & PTX_USES_ATOMIC);
	if (two) {
		pthread_mutex_lock(&second.m);
		if (!second.started) {
			pthread_t t;
			second.started = !pthread_create(&t, 0, second_thread, 0);
		}
		two = second.started;
		if (two) second.j = &j, second.busy = 1, pthread_cond_broadcast(&second.c);
		pthread_mutex_unlock(&second.m);
	}
	work(&first, &j);
	if (two) {
		pthread_mutex_lock(&second.m);
		while (second.busy) pthread_cond_wait(&second.c, &second.m);
		pthread_mutex_unlock(&second.m);
	}
	free(j.released);
	o->flops = j.flops, o->moved = j.moved;
	COUNT(flops) += (int64_t)j.flops, COUNT(kernelBytes) += (int64_t)j.moved, COUNT(instructions) += (int64_t)j.insts;
	if (j.fault) F_.sticky = j.code;
}
