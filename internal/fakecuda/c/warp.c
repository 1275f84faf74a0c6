// warp.c: loads and stores of a warp, and everything that is checked about them.
#include "warp.h"
#include <stdarg.h>
#include <stdio.h>

const char *where(const ptx_warp *w, uint32_t thread, char *buf, size_t n) {
	const blockctx *b = BLOCK(w);
	char a[400];
	uint32_t l = thread & 31;
	snprintf(buf, n, "%s, PTX line %d, block (%u,%u,%u), thread (%u,%u,%u),", op_text(b->o->seq, a, sizeof a), w->line, w->ctaid[0], w->ctaid[1], w->ctaid[2],
		w->tid[0][l], w->tid[1][l], w->tid[2][l]);
	return buf;
}

// fault ends the launch: reported once, counted, and the device is unusable afterwards as a real one would be.
int fault(ptx_warp *w, uint32_t m, CUresult code, int counter, const char *format, ...) {
	job *j = BLOCK(w)->job;
	if (__atomic_exchange_n(&j->fault, 1, __ATOMIC_RELAXED)) return 1;
	j->code = code;
	F_.counters[counter]++;
	char text[512], at[640];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	report("%s %s", where(w, w->warp * 32 + (m ? (uint32_t)__builtin_ctz(m) : 0), at, sizeof at), text);
	return 1;
}

static int warp_fault(ptx_warp *w, uint32_t m, const char *why) { return fault(w, m, ERR_LAUNCH_TIMEOUT, COUNTER_faults, "%s", why); }

// space_of resolves a generic address to its space.
int space_of(uint64_t *a, int space) {
	if (space != PTX_GENERIC) return space;
	if (*a >> 61 & 1) return *a -= PTX_LOCAL_WINDOW, PTX_LOCAL;
	if (*a >> 60 & 1) return *a -= PTX_SHARED_WINDOW, PTX_SHARED;
	return PTX_GLOBAL;
}

uint8_t *lane_bytes(ptx_warp *w, uint64_t a, int space, int lane) {
	if (space == PTX_SHARED) return BLOCK(w)->shared + (a - PTX_SHARED_BASE);
	if (space == PTX_LOCAL) return w->local + (uint64_t)lane * BLOCK(w)->o->f->e->local_bytes + (a - PTX_LOCAL_BASE);
	return (uint8_t *)a;
}

static void once_per_op(ptx_warp *w, int counter, uint32_t thread, const char *what, uint64_t ptr) {
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	static uint32_t lastSeq, lastLine;
	pthread_mutex_lock(&m);
	F_.counters[counter]++;
	int known = lastSeq == BLOCK(w)->o->seq && lastLine == (uint32_t)w->line;
	lastSeq = BLOCK(w)->o->seq, lastLine = (uint32_t)w->line;
	pthread_mutex_unlock(&m);
	char at[640], c[256], r[128];
	int write = strstr(what, "store") != 0;
	if (!known) report("%s: %s %s%s", what, where(w, thread, at, sizeof at), mem_text(ptr, c, sizeof c), range_text(BLOCK(w)->o, ptr, 1, write, r, sizeof r));
}

static int written(const uint8_t *init, uint64_t bytes) {
	uint64_t x;
	for (; bytes >= 8; init += 8, bytes -= 8) {
		memcpy(&x, init, 8);
		if (x != 0x0101010101010101ull) return 0;
	}
	for (; bytes; init++, bytes--)
		if (!*init) return 0;
	return 1;
}

// One allocation holds all lanes' bytes from lo to hi.
static void check_global(ptx_warp *w, uint32_t m, const uint64_t *a, unsigned bytes, int write, int atomic, alloc *al, uint64_t lo, uint64_t hi) {
	blockctx *b = BLOCK(w);
	op *o = b->o;
	int whole = range_allowed(o, lo, hi - lo, write, &b->hint) && (!atomic || range_allowed(o, lo, hi - lo, 0, &b->hint));
	for (uint32_t t = m; !whole && t; t &= t - 1) {
		int l = __builtin_ctz(t);
		if (!range_allowed(o, a[l], bytes, write, &b->hint))
			once_per_op(w, COUNTER_outOfRange, w->warp * 32 + (uint32_t)l, write ? "outside its buffers: a store of" : "outside its buffers: a load of", a[l]);
	}
	if (write && F_.nnames)
		for (uint32_t t = m; t; t &= t - 1) {
			const named *n = mem_name(a[__builtin_ctz(t)]);
			if (n && (n->flags & 1)) once_per_op(w, COUNTER_readOnlyWrites, w->warp * 32 + (uint32_t)__builtin_ctz(t), "write to read-only memory: a store of", a[__builtin_ctz(t)]);
		}
	if (SET(checkLevel) < 1) {
		if (write)
			for (uint32_t t = m; t; t &= t - 1) memset(al->init + (a[__builtin_ctz(t)] - al->base), 1, bytes);
		return;
	}
	int one = hi - lo == bytes, dense = hi - lo == (uint64_t)__builtin_popcount(m) * bytes;
	for (uint32_t t = m; dense && t & (t - 1); t &= t - 1) // a hull of the right size may still hide holes and overlaps
		dense = a[__builtin_ctz(t & (t - 1))] == a[__builtin_ctz(t)] + bytes;
	uint8_t *init = al->init - al->base; // of address 0
	int good = al->kind != MEM_DEVICE || (write && !atomic) || ((one || dense) && written(init + lo, hi - lo));
	if (one || dense) {
		race_range(o, al, lo, hi - lo, write, &b->memo);
		if (write && (good || !atomic)) memset(init + lo, 1, hi - lo);
		if (one && !write) m &= -m; // for what threads do to each other one lane stands for all
	}
	for (uint32_t t = m; t; t &= t - 1) {
		int l = __builtin_ctz(t);
		if (!one && !dense) race_range(o, al, a[l], bytes, write, &b->memo);
		if (!good && !written(init + a[l], bytes)) {
			char at[640];
			uninitialised(o, a[l], 0, where(w, w->warp * 32 + (uint32_t)l, at, sizeof at));
		}
		if (write) memset(init + a[l], 1, bytes);
		else if (SET(checkLevel) >= 2) within_global(b, w, al, a[l], bytes, w->warp * 32 + (uint32_t)l, 0, atomic, 0);
	}
}

// access_lanes checks an access of the lanes m at addresses a, all in one space. Stores are checked against other threads lane by lane as
// they are done (store_lane), so that lanes of one instruction can be compared.
int access_lanes(ptx_warp *w, uint32_t m, const uint64_t *a, int space, unsigned bytes, int write, int atomic) {
	blockctx *b = BLOCK(w);
	uint64_t lo = ~0ull, hi = 0, all = 0;
	if (m == 0xffffffffu) {
		LANES all |= a[l], lo = a[l] < lo ? a[l] : lo, hi = a[l] > hi ? a[l] : hi;
	} else {
		for (uint32_t t = m; t; t &= t - 1) {
			uint64_t x = a[__builtin_ctz(t)];
			all |= x;
			if (x < lo) lo = x;
			if (x > hi) hi = x;
		}
	}
	if (all & (bytes - 1)) return fault(w, m, ERR_MISALIGNED_ADDRESS, COUNTER_misaligned, "accesses %u bytes at 0x%llx, which is not a multiple of %u", bytes, (unsigned long long)lo, bytes);
	hi += bytes;
	if (space == PTX_SHARED || space == PTX_LOCAL) {
		uint64_t size = space == PTX_SHARED ? b->sharedBytes : b->o->f->e->local_bytes, base = space == PTX_SHARED ? PTX_SHARED_BASE : PTX_LOCAL_BASE;
		if (lo < base || hi > base + size || hi < lo)
			return fault(w, m, ERR_ILLEGAL_ADDRESS, COUNTER_outOfBounds, "out of bounds: %s bytes %lld to %lld of %llu bytes of %s memory", write ? "writes" : "reads",
				(long long)(lo - base), (long long)(hi - base), (unsigned long long)size, space == PTX_SHARED ? "shared" : "local");
		if (space == PTX_LOCAL) return 0;
		int level = (int)SET(checkLevel), whole = hi - lo <= 32ull * bytes && written(b->sinit + (lo - PTX_SHARED_BASE), hi - lo); // the hull covers all lanes
		if (whole && (level < 2 || write)) return 0;
		if (!write && hi - lo == bytes) m &= -m; // all lanes read one place: one is enough
		for (uint32_t t = m; t; t &= t - 1) {
			int l = __builtin_ctz(t);
			uint32_t off = (uint32_t)(a[l] - PTX_SHARED_BASE);
			if (!whole && level >= 1 && (!write || atomic) && !written(b->sinit + off, bytes)) {
				char at[640];
				uninitialised(b->o, off, 1, where(w, w->warp * 32 + (uint32_t)l, at, sizeof at));
			}
			if (write) memset(b->sinit + off, 1, bytes);
			else if (level >= 2) within_shared(b, w, off, bytes, w->warp * 32 + (uint32_t)l, 0, atomic, 0);
		}
		return 0;
	}
	b->moved += hi - lo < (uint64_t)bytes * 32 ? hi - lo : (uint64_t)bytes * (unsigned)__builtin_popcount(m);
	alloc *al = b->last;
	if (!al || lo < al->base || hi > al->base + al->bytes) al = b->last = mem_find(lo);
	if (al && hi <= al->base + al->bytes && hi > lo) {
		if (al->kind == MEM_CONST && write) return fault(w, m, ERR_ILLEGAL_ADDRESS, COUNTER_readOnlyWrites, "writes constant memory");
		check_global(w, m, a, bytes, write, atomic, al, lo, hi);
		return 0;
	}
	for (uint32_t t = m; t; t &= t - 1) {
		int l = __builtin_ctz(t);
		al = mem_find(a[l]);
		char c[256];
		if (!al || a[l] + bytes > al->base + al->bytes)
			return fault(w, 1u << l, ERR_ILLEGAL_ADDRESS, COUNTER_outOfBounds, "out of bounds: %s %u bytes at %s", write ? "writes" : "reads", bytes, mem_text(a[l], c, sizeof c));
		if (al->kind == MEM_CONST && write) return fault(w, m, ERR_ILLEGAL_ADDRESS, COUNTER_readOnlyWrites, "writes constant memory");
		check_global(w, 1u << l, a, bytes, write, atomic, al, a[l], a[l] + bytes);
	}
	return 0;
}

// gather makes the lanes' addresses and resolves generic ones. Lanes in different spaces are split off: the mask that comes back is of one.
static uint32_t gather(uint32_t m, const uint64_t *addr, int64_t off, int *space, uint64_t *a) {
	uint32_t same = 0;
	int s = -1;
	if (*space != PTX_GENERIC) {
		if (addr) LANES a[l] = addr[l] + (uint64_t)off;
		else LANES a[l] = (uint64_t)off;
		return m;
	}
	for (uint32_t t = m; t; t &= t - 1) {
		int l = __builtin_ctz(t);
		uint64_t x = (addr ? addr[l] : 0) + (uint64_t)off;
		int k = space_of(&x, *space);
		if (s < 0) s = k;
		if (k == s) a[l] = x, same |= 1u << l;
	}
	*space = s;
	return same;
}

static void put(void *reg, int l, int regbytes, uint64_t v) {
	switch (regbytes) {
	case 2: ((uint16_t *)reg)[l] = (uint16_t)v; break;
	case 4: ((uint32_t *)reg)[l] = (uint32_t)v; break;
	default: ((uint64_t *)reg)[l] = v;
	}
}

static int warp_load(ptx_warp *w, uint32_t m, const uint64_t *addr, int64_t off, int space, int bytes, int vec, void *const *dst, int regbytes, int sign) {
	while (m) {
		uint64_t a[PTX_LANES];
		int s = space;
		uint32_t part = gather(m, addr, off, &s, a);
		if (access_lanes(w, part, a, s, (unsigned)(bytes * vec), 0, 0)) return 1;
		if (bytes == 4 && regbytes == 4 && s != PTX_LOCAL) { // by far the most
			const uint8_t *zero = s == PTX_SHARED ? BLOCK(w)->shared - PTX_SHARED_BASE : 0;
			for (int v = 0; v < vec; v++) {
				uint32_t *d = dst[v];
				if (!d) continue;
				if (part == 0xffffffffu) LANES memcpy(&d[l], zero + a[l] + 4 * v, 4);
				else
					for (uint32_t t = part; t; t &= t - 1) memcpy(&d[__builtin_ctz(t)], zero + a[__builtin_ctz(t)] + 4 * v, 4);
			}
			m &= ~part;
			continue;
		}
		for (int v = 0; v < vec; v++) {
			if (!dst[v]) continue;
			for (uint32_t t = part; t; t &= t - 1) {
				int l = __builtin_ctz(t);
				const uint8_t *p = lane_bytes(w, a[l], s, l) + v * bytes;
				uint64_t x = 0;
				switch (bytes) {
				case 1: x = sign ? (uint64_t)(int64_t)(int8_t)*p : *p; break;
				case 2: { uint16_t y; memcpy(&y, p, 2); x = sign ? (uint64_t)(int64_t)(int16_t)y : y; break; }
				case 4: { uint32_t y; memcpy(&y, p, 4); x = sign ? (uint64_t)(int64_t)(int32_t)y : y; break; }
				default: memcpy(&x, p, 8);
				}
				put(dst[v], l, regbytes, x);
			}
		}
		m &= ~part;
	}
	return 0;
}

static int warp_store(ptx_warp *w, uint32_t m, const uint64_t *addr, int64_t off, int space, int bytes, int vec, const void *const *src, int regbytes) {
	blockctx *b = BLOCK(w);
	while (m) {
		uint64_t a[PTX_LANES];
		int s = space;
		uint32_t part = gather(m, addr, off, &s, a);
		unsigned size = (unsigned)(bytes * vec);
		if (access_lanes(w, part, a, s, size, 1, 0)) return 1;
		for (uint32_t t = part; t; t &= t - 1) {
			int l = __builtin_ctz(t);
			uint8_t data[32];
			for (int v = 0; v < vec; v++) memcpy(data + v * bytes, (const uint8_t *)src[v] + l * regbytes, (size_t)bytes);
			uint32_t thread = w->warp * 32 + (uint32_t)l;
			if (SET(checkLevel) >= 2) {
				if (s == PTX_SHARED) within_shared(b, w, (uint32_t)(a[l] - PTX_SHARED_BASE), size, thread, 1, 0, data);
				else if (s != PTX_LOCAL) within_global(b, w, b->last && a[l] - b->last->base < b->last->bytes ? b->last : mem_find(a[l]), a[l], size, thread, 1, 0, data);
			}
			memcpy(lane_bytes(w, a[l], s, l), data, size);
		}
		m &= ~part;
	}
	return 0;
}

static int warp_fence(ptx_warp *w, uint32_t m) {
	(void)m;
	BLOCK(w)->fenced = 1;
	return 0;
}

const ptx_host warp_host = {
	.load = warp_load, .store = warp_store, .atom = warp_atom, .shfl = warp_shfl, .vote = warp_vote, .match = warp_match, .redux = warp_redux,
	.warpsync = warp_sync, .mma = warp_mma, .ldmatrix = warp_ldmatrix, .cpasync = warp_cpasync, .cpcommit = warp_cpcommit, .cpwait = warp_cpwait,
	.fence = warp_fence, .fault = warp_fault,
};
