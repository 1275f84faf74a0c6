// async.c: cp.async and atomics.
//
// A cp.async is done as late as it may: its bytes arrive when its thread waits for them. From the moment of issue until then the
// destination is poisoned and counts as unwritten, so a missing wait is found by whoever reads.
#include "warp.h"
#include <stdlib.h>

int warp_cpasync(ptx_warp *w, uint32_t m, const uint64_t *dst, int64_t dstoff, const uint64_t *src, int64_t srcoff, int bytes, const uint32_t *valid) {
	blockctx *b = BLOCK(w);
	copyqueue *q = &b->copies[w->warp];
	if (q->n == q->cap) {
		q->cap = q->cap ? 2 * q->cap : 16;
		q->p = realloc(q->p, (size_t)q->cap * sizeof *q->p);
	}
	pendingcopy *p = &q->p[q->n];
	p->m = m, p->bytes = bytes, p->group = q->group, p->line = w->line;
	uint32_t reading = 0;
	for (uint32_t t = m; t; t &= t - 1) {
		int l = __builtin_ctz(t);
		p->dst[l] = (dst ? dst[l] : 0) + (uint64_t)dstoff;
		p->src[l] = (src ? src[l] : 0) + (uint64_t)srcoff;
		p->valid[l] = valid && valid[l] < (uint32_t)bytes ? valid[l] : (uint32_t)bytes;
		if (p->valid[l]) reading |= 1u << l;
		if (space_of(&p->dst[l], PTX_SHARED) != PTX_SHARED || space_of(&p->src[l], PTX_GENERIC) != PTX_GLOBAL)
			return fault(w, 1u << l, ERR_ILLEGAL_ADDRESS, COUNTER_outOfBounds, "cp.async copies from global to shared memory only");
	}
	// a source that is cut short is read in part: lanes of one length are checked together
	for (uint32_t left = reading; left;) {
		uint32_t n = p->valid[__builtin_ctz(left)], same = 0;
		for (uint32_t t = left; t; t &= t - 1)
			if (p->valid[__builtin_ctz(t)] == n) same |= t & -t;
		if (n == (uint32_t)bytes) {
			if (access_lanes(w, same, p->src, PTX_GLOBAL, (unsigned)bytes, 0, 0)) return 1;
		} else {
			for (uint32_t t = same; t; t &= t - 1) { // odd lengths go byte by byte, for alignment is of the whole
				int l = __builtin_ctz(t);
				uint64_t a[PTX_LANES];
				if (p->src[l] & (uint64_t)(bytes - 1)) return fault(w, 1u << l, ERR_MISALIGNED_ADDRESS, COUNTER_misaligned, "cp.async of %d bytes from a misaligned address", bytes);
				for (uint32_t i = 0; i < n; i++) {
					a[l] = p->src[l] + i;
					if (access_lanes(w, 1u << l, a, PTX_GLOBAL, 1, 0, 0)) return 1;
				}
			}
		}
		left &= ~same;
	}
	if (access_lanes(w, m, p->dst, PTX_SHARED, (unsigned)bytes, 1, 0)) return 1;
	for (uint32_t t = m; t; t &= t - 1) {
		int l = __builtin_ctz(t);
		uint32_t off = (uint32_t)(p->dst[l] - PTX_SHARED_BASE);
		if (SET(checkLevel) >= 2) within_shared(b, w, off, (unsigned)bytes, w->warp * 32 + (uint32_t)l, 1, 0, 0);
		memset(b->shared + off, 0xff, (size_t)bytes);
		memset(b->sinit + off, 0, (size_t)bytes);
	}
	q->n++;
	return 0;
}

int warp_cpcommit(ptx_warp *w, uint32_t m) {
	(void)m;
	BLOCK(w)->copies[w->warp].group++;
	return 0;
}

// cpwait lets all but the last pending groups arrive; -1: what was not committed as well.
int warp_cpwait(ptx_warp *w, uint32_t m, int pending) {
	(void)m;
	blockctx *b = BLOCK(w);
	copyqueue *q = &b->copies[w->warp];
	int keep = 0;
	for (int i = 0; i < q->n; i++) {
		pendingcopy *p = &q->p[i];
		if (pending >= 0 && p->group + (uint32_t)pending >= q->group) {
			q->p[keep++] = *p;
			continue;
		}
		for (uint32_t t = p->m; t; t &= t - 1) {
			int l = __builtin_ctz(t);
			uint32_t off = (uint32_t)(p->dst[l] - PTX_SHARED_BASE);
			if (SET(checkLevel) >= 2) within_shared(b, w, off, (unsigned)p->bytes, w->warp * 32 + (uint32_t)l, 1, 0, 0);
			memcpy(b->shared + off, (void *)p->src[l], p->valid[l]);
			memset(b->shared + off + p->valid[l], 0, (size_t)p->bytes - p->valid[l]);
			memset(b->sinit + off, 1, (size_t)p->bytes);
		}
	}
	q->n = keep;
	return 0;
}

#define INTEGER(T, S)                                                       \
	switch (op) {                                                           \
	case PTX_OP_ADD: n = (T)(x + y); break;                                 \
	case PTX_OP_MIN: n = sign ? ((S)x < (S)y ? x : y) : (x < y ? x : y); break; \
	case PTX_OP_MAX: n = sign ? ((S)x > (S)y ? x : y) : (x > y ? x : y); break; \
	case PTX_OP_INC: n = x >= y ? 0 : (T)(x + 1); break;                    \
	case PTX_OP_DEC: n = x == 0 || x > y ? y : (T)(x - 1); break;           \
	case PTX_OP_AND: n = x & y; break;                                      \
	case PTX_OP_OR: n = x | y; break;                                       \
	case PTX_OP_XOR: n = x ^ y; break;                                      \
	case PTX_OP_EXCH: n = y; break;                                         \
	default: n = x == y ? z : x;                                            \
	}

static uint32_t pair_add(uint32_t x, uint32_t y, int bf) {
	return bf ? UB(B(x) + B(y)) | UB(B(x >> 16) + B(y >> 16)) << 16 : UH(H(x & 0xffff) + H(y & 0xffff)) | UH(H(x >> 16) + H(y >> 16)) << 16;
}

// Lanes act one after the other in the order of their numbers; blocks of a kernel with atomics run in order, so results are repeatable here, though
// not on hardware: sums of floats are counted (floatAtomics).
int warp_atom(ptx_warp *w, uint32_t m, const uint64_t *addr, int64_t off, int space, int op, int type, void *dst, const void *a_, const void *b_) {
	blockctx *b = BLOCK(w);
	int bytes = type == PTX_T_U64 || type == PTX_T_S64 || type == PTX_T_F64 ? 8 : type == PTX_T_F16 || type == PTX_T_BF16 || type == PTX_T_B16 ? 2 : 4;
	if (op == PTX_OP_ADD && type != PTX_T_U32 && type != PTX_T_S32 && type != PTX_T_U64 && type != PTX_T_S64) COUNT(floatAtomics)++;
	for (uint32_t t = m; t; t &= t - 1) {
		int l = __builtin_ctz(t);
		uint64_t at[PTX_LANES];
		at[l] = (addr ? addr[l] : 0) + (uint64_t)off;
		int s = space_of(&at[l], space);
		if (s == PTX_LOCAL) return fault(w, 1u << l, ERR_ILLEGAL_ADDRESS, COUNTER_outOfBounds, "atomic on local memory");
		if (access_lanes(w, 1u << l, at, s, (unsigned)bytes, 1, 1)) return 1;
		uint32_t thread = w->warp * 32 + (uint32_t)l;
		if (SET(checkLevel) >= 2) {
			if (s == PTX_SHARED) within_shared(b, w, (uint32_t)(at[l] - PTX_SHARED_BASE), (unsigned)bytes, thread, 1, 1, 0);
			else within_global(b, w, mem_find(at[l]), at[l], (unsigned)bytes, thread, 1, 1, 0);
		}
		uint8_t *p = lane_bytes(w, at[l], s, l);
		int sign = type == PTX_T_S32 || type == PTX_T_S64;
		if (bytes == 8) {
			uint64_t x, y = ((const uint64_t *)a_)[l], z = b_ ? ((const uint64_t *)b_)[l] : 0, n;
			memcpy(&x, p, 8);
			if (type == PTX_T_F64 && op == PTX_OP_ADD) n = UD(D(x) + D(y));
			else INTEGER(uint64_t, int64_t)
			memcpy(p, &n, 8);
			if (dst) ((uint64_t *)dst)[l] = x;
		} else if (bytes == 4) {
			uint32_t x, y = ((const uint32_t *)a_)[l], z = b_ ? ((const uint32_t *)b_)[l] : 0, n;
			memcpy(&x, p, 4);
			if (type == PTX_T_F32 && op == PTX_OP_ADD) n = U(F(x) + F(y));
			else if (type == PTX_T_F16X2 || type == PTX_T_BF16X2) n = op == PTX_OP_ADD ? pair_add(x, y, type == PTX_T_BF16X2) : y;
			else INTEGER(uint32_t, int32_t)
			memcpy(p, &n, 4);
			if (dst) ((uint32_t *)dst)[l] = x;
		} else {
			uint16_t x, y = ((const uint16_t *)a_)[l], z = b_ ? ((const uint16_t *)b_)[l] : 0, n;
			memcpy(&x, p, 2);
			if (type == PTX_T_F16 && op == PTX_OP_ADD) n = (uint16_t)UH(H(x) + H(y));
			else if (type == PTX_T_BF16 && op == PTX_OP_ADD) n = (uint16_t)UB(B(x) + B(y));
			else n = op == PTX_OP_CAS ? (x == y ? z : x) : y;
			memcpy(p, &n, 2);
			if (dst) ((uint16_t *)dst)[l] = x;
		}
	}
	if (b->fenced && b->job->released) {
		job *j = b->job;
		if (!j->released[b->index]) j->released[b->index] = ++j->nreleased;
		b->acquired = j->nreleased;
	}
	return 0;
}
