// warpops.c: what the lanes of a warp do together: shuffles, votes, matrix instructions.
#include "warp.h"

// converged: every living lane that the mask names must be here. Hardware would wait, and mostly for ever.
static int converged(ptx_warp *w, uint32_t m, const uint32_t *members) {
	uint32_t want = members[__builtin_ctz(m)];
	for (uint32_t t = m; t; t &= t - 1)
		if (members[__builtin_ctz(t)] != want)
			return fault(w, t & -t, ERR_LAUNCH_FAILED, COUNTER_divergent, "divergent: lanes give different member masks, 0x%08x and 0x%08x", want, members[__builtin_ctz(t)]);
	uint32_t missing = want & w->live & ~m, self = m & ~want;
	if (missing) return fault(w, m, ERR_LAUNCH_FAILED, COUNTER_divergent, "divergent: the mask 0x%08x names lanes 0x%08x, which are elsewhere", want, missing);
	if (self) return fault(w, self, ERR_LAUNCH_FAILED, COUNTER_divergent, "divergent: lanes 0x%08x are not in the mask 0x%08x that they give", self, want);
	return 0;
}

int warp_shfl(ptx_warp *w, uint32_t m, int mode, uint32_t *dst, int32_t *ok, const uint32_t *a, const uint32_t *b, const uint32_t *c, const uint32_t *members) {
	if (converged(w, m, members)) return 1;
	uint32_t out[PTX_LANES];
	for (uint32_t t = m; t; t &= t - 1) {
		int l = __builtin_ctz(t);
		int n = (int)(b[l] & 31), clamp = (int)(c[l] & 31), seg = (int)(c[l] >> 8 & 31);
		int last = (l & seg) | (clamp & ~seg), first = l & seg, j = l, in = 0;
		switch (mode) {
		case PTX_SHFL_UP: j = l - n, in = j >= last; break;
		case PTX_SHFL_DOWN: j = l + n, in = j <= last; break;
		case PTX_SHFL_BFLY: j = l ^ n, in = j <= last; break;
		case PTX_SHFL_IDX: j = first | (n & ~seg), in = j <= last; break;
		}
		if (!in) j = l;
		if (!(m >> j & 1)) return fault(w, 1u << l, ERR_LAUNCH_FAILED, COUNTER_divergent, "shuffles from lane %d, which does not take part", j);
		out[l] = a[j];
		if (ok) ok[l] = -in;
	}
	for (uint32_t t = m; dst && t; t &= t - 1) dst[__builtin_ctz(t)] = out[__builtin_ctz(t)];
	return 0;
}

int warp_vote(ptx_warp *w, uint32_t m, int mode, void *dst, const int32_t *p, int negate, const uint32_t *members) {
	if (converged(w, m, members)) return 1;
	uint32_t yes = (negate ? ~ptx_bits(p) : ptx_bits(p)) & m;
	int v = mode == PTX_VOTE_ALL ? yes == m : mode == PTX_VOTE_ANY ? yes != 0 : yes == m || yes == 0;
	for (uint32_t t = m; dst && t; t &= t - 1) {
		int l = __builtin_ctz(t);
		if (mode == PTX_VOTE_BALLOT) ((uint32_t *)dst)[l] = yes;
		else ((int32_t *)dst)[l] = -v;
	}
	return 0;
}

int warp_match(ptx_warp *w, uint32_t m, int all, int bytes, uint32_t *dst, int32_t *ok, const void *a, const uint32_t *members) {
	if (converged(w, m, members)) return 1;
	uint32_t out[PTX_LANES];
	for (uint32_t t = m; t; t &= t - 1) {
		int l = __builtin_ctz(t);
		out[l] = 0;
		for (uint32_t u = m; u; u &= u - 1) {
			int k = __builtin_ctz(u);
			if (!memcmp((const char *)a + l * bytes, (const char *)a + k * bytes, (size_t)bytes)) out[l] |= 1u << k;
		}
	}
	for (uint32_t t = m; t; t &= t - 1) {
		int l = __builtin_ctz(t);
		if (all) out[l] = out[l] == m ? m : 0;
		if (dst) dst[l] = out[l];
		if (ok) ok[l] = -(out[l] != 0);
	}
	return 0;
}

int warp_redux(ptx_warp *w, uint32_t m, int op, int type, uint32_t *dst, const uint32_t *a, const uint32_t *members) {
	if (converged(w, m, members)) return 1;
	uint32_t r = a[__builtin_ctz(m)];
	for (uint32_t t = m & (m - 1); t; t &= t - 1) {
		uint32_t x = a[__builtin_ctz(t)];
		switch (op) {
		case PTX_OP_ADD: r += x; break;
		case PTX_OP_MIN: r = type == PTX_T_S32 ? ((int32_t)x < (int32_t)r ? x : r) : (x < r ? x : r); break;
		case PTX_OP_MAX: r = type == PTX_T_S32 ? ((int32_t)x > (int32_t)r ? x : r) : (x > r ? x : r); break;
		case PTX_OP_AND: r &= x; break;
		case PTX_OP_OR: r |= x; break;
		case PTX_OP_XOR: r ^= x; break;
		}
	}
	for (uint32_t t = m; dst && t; t &= t - 1) dst[__builtin_ctz(t)] = r;
	return 0;
}

// bar.warp.sync orders the memory accesses of the lanes that meet.
int warp_sync(ptx_warp *w, uint32_t m, const uint32_t *members) {
	if (converged(w, m, members)) return 1;
	warp_tick(BLOCK(w), w);
	return 0;
}

static uint32_t reg(const void *const *regs, int i, int lane) { return ((const uint32_t *)regs[i])[lane]; }

// Element (row or column, k) of an operand lies in lane and register as the instruction's tables say: a lane holds, for its row lane / 4, runs of
// as many consecutive k as fit a register, one run from k = (lane % 4) * run, the next 4 runs further; A has the rows + 8 in between.
static void unpack(int type, int k, int isA, const void *const *regs, float *out) { // out[row][k] or out[column][k]
	int run = type == PTX_MMA_TF32 ? 1 : type >= PTX_MMA_S8 ? 4 : 2, rows = isA ? 16 : 8;
	for (int r = 0; r < rows; r++)
		for (int x = 0; x < k; x++) {
			int lane = (r & 7) * 4 + x / run % 4, chunk = x / (4 * run);
			int i = isA ? chunk * 2 + (r >> 3) : chunk;
			uint32_t v = reg(regs, i, lane);
			float f;
			switch (type) {
			case PTX_MMA_F16: f = H(v >> (16 * (x & 1)) & 0xffff); break;
			case PTX_MMA_BF16: f = B(v >> (16 * (x & 1)) & 0xffff); break;
			case PTX_MMA_TF32: f = trunc_tf32(F(v)); break;
			case PTX_MMA_S8: f = (float)(int8_t)(v >> (8 * (x & 3))); break;
			default: f = (float)(uint8_t)(v >> (8 * (x & 3)));
			}
			out[r * k + x] = f;
		}
}

// D = A B + C for one tile of 16 x 8. Products are exact; sums are rounded to float one after the other in the order of k, which hardware does not
// promise: kernels are held to a tolerance. The integer forms are exact.
int warp_mma(ptx_warp *w, uint32_t m, int type, int k, void *const *d, const void *const *a, const void *const *b, const void *const *c) {
	if (m != 0xffffffffu) return fault(w, m, ERR_LAUNCH_FAILED, COUNTER_divergent, "divergent: only lanes 0x%08x reach a matrix instruction, which takes all 32", m);
	float A[16 * 32], Bt[8 * 32], B_[32 * 8];
	unpack(type, k, 1, a, A);
	unpack(type, k, 0, b, Bt);
	for (int n = 0; n < 8; n++)
		for (int x = 0; x < k; x++) B_[x * 8 + n] = Bt[n * k + x];
	for (int r = 0; r < 16; r++) {
		int base = (r >> 3) * 2; // register of the pair of columns
		if (type >= PTX_MMA_S8) {
			for (int n = 0; n < 8; n++) {
				int lane = (r & 7) * 4 + n / 2, i = base + (n & 1);
				int64_t sum = 0;
				for (int x = 0; x < k; x++) sum += (int64_t)A[r * k + x] * (int64_t)B_[x * 8 + n];
				((uint32_t *)d[i])[lane] = ((const uint32_t *)c[i])[lane] + (uint32_t)sum;
			}
			continue;
		}
		float acc[8];
		for (int n = 0; n < 8; n++) acc[n] = F(reg(c, base + (n & 1), (r & 7) * 4 + n / 2));
		for (int x = 0; x < k; x++)
			for (int n = 0; n < 8; n++) acc[n] = __builtin_fmaf(A[r * k + x], B_[x * 8 + n], acc[n]);
		for (int n = 0; n < 8; n++) ((uint32_t *)d[base + (n & 1)])[(r & 7) * 4 + n / 2] = U(acc[n]);
	}
	return 0;
}

// ldmatrix: lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i, 16 bytes each.
int warp_ldmatrix(ptx_warp *w, uint32_t m, int n, int trans, uint32_t *const *dst, const uint64_t *addr, int64_t off, int space) {
	if (m != 0xffffffffu) return fault(w, m, ERR_LAUNCH_FAILED, COUNTER_divergent, "divergent: only lanes 0x%08x reach ldmatrix, which takes all 32", m);
	uint64_t a[PTX_LANES] = {0};
	uint32_t givers = n == 4 ? 0xffffffffu : (1u << (8 * n)) - 1;
	int s = space;
	for (int l = 0; l < 8 * n; l++) {
		a[l] = (addr ? addr[l] : 0) + (uint64_t)off;
		s = space_of(&a[l], space);
		if (s != PTX_SHARED) return fault(w, 1u << l, ERR_ILLEGAL_ADDRESS, COUNTER_outOfBounds, "ldmatrix from an address outside shared memory");
	}
	if (access_lanes(w, givers, a, s, 16, 0, 0)) return 1;
	for (int i = 0; i < n; i++) {
		uint16_t x[8][8];
		for (int r = 0; r < 8; r++) memcpy(x[r], lane_bytes(w, a[8 * i + r], s, 0), 16);
		for (int l = 0; dst[i] && l < PTX_LANES; l++) {
			int r = l / 4, c = l % 4 * 2;
			dst[i][l] = trans ? x[c][r] | (uint32_t)x[c + 1][r] << 16 : x[r][c] | (uint32_t)x[r][c + 1] << 16;
		}
	}
	return 0;
}
