/* MatMul of f16 (-DF16) and bf16 (-DBF16) on tensor cores: tiles of 128 by 128, 32 deep, double-buffered through shared memory by asynchronous copies of 16 bytes; eight warps
 * with 64 by 32 elements each, as 4 by 4 products of 16x8x16 with sums in f32. For compute capability 8.0 and up.
 *
 * An operand lies in shared memory as it lies in global memory: [rows][k] or, transposed, [k][rows]; ldmatrix turns it where needed. Rows of global memory
 * begin at multiples of 16 bytes and have multiples of 8 elements (the caller sees to it), so that a copy is inside or outside as a whole. */
#include "lib.h"

enum { SIDE = 128, DEEP = 32, PITCH = DEEP + 8, TURNED = SIDE + 8, BUFFER = SIDE * PITCH };

static S u16 room[4 * BUFFER]; /* a and b, twice */

INLINE u32 address(const S u16 *p) { return (u32)(u64)p; }

/* A thread copies two of the 512 pieces of 8 elements of each tile: where from, where to, how far along k, and whether the piece is inside along rows. */
typedef struct {
	const u16 G *from[2];
	u32 to[2];
	int k[2];
} pieces;

INLINE pieces begin(const S u16 *to, const u16 G *from, i64 row0, i64 rows, i64 lead, int turned) {
	pieces p;
#pragma unroll
	for (u32 e = 0; e < 2; e++) {
		u32 c = TID + e * 256;
		u32 r = turned ? c >> 4 : c >> 2, x = turned ? (c & 15) * 8 : (c & 3) * 8;
		i64 row = turned ? r : row0 + r, col = turned ? row0 + x : x;
		int inside = (turned ? col : row) < rows;
		p.from[e] = inside ? from + row * lead + col : from;
		p.to[e] = address(to) + 2 * (r * (turned ? TURNED : PITCH) + x);
		p.k[e] = inside ? (int)(turned ? r : x) : 0x40000000; /* beyond every end */
	}
	return p;
}

/* starts the copies of a tile that has `left` steps of k; what lies outside becomes zeros */
INLINE void fetch(pieces *p, u32 buffer, int left, i64 step) {
#pragma unroll
	for (u32 e = 0; e < 2; e++) {
		u32 bytes = p->k[e] < left ? 16 : 0;
		__asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(p->to[e] + buffer), "l"(p->from[e]), "r"(bytes) : "memory");
		p->from[e] += step;
	}
}

INLINE void load4(u32 *r, u32 at, int turned) {
	if (turned) {
		__asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
	} else {
		__asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
	}
}

INLINE void multiply(float *d, const u32 *a, const u32 *b, int bf) {
	if (bf) {
		__asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
			: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
	} else {
		__asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
			: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
	}
}

INLINE void product(u16 G *y, const u16 G *a, const u16 G *b, i64 m, i64 n, i64 k, i64 lead_a, i64 lead_b, int turn_a, int turn_b, int bf) {
	i64 row0 = (i64)BID * SIDE, col0 = (i64)BIDY * SIDE;
	u32 lane = TID & 31, warp = TID >> 5, r = lane & 7, q = lane >> 3;
	u32 wr = (warp & 1) * 64, wc = (warp >> 1) * 32;
	float sum[4][4][4] = {};
	pieces pa = begin(room, a, row0, m, lead_a, turn_a), pb = begin(room + BUFFER, b, col0, n, lead_b, turn_b);
	i64 step_a = turn_a ? DEEP * lead_a : DEEP, step_b = turn_b ? DEEP * lead_b : DEEP;
	int left = (int)k;
	u32 buffer = 0; /* of the tile that is multiplied, in bytes */
	fetch(&pa, 0, left, step_a);
	fetch(&pb, 0, left, step_b);
	__asm__ volatile("cp.async.commit_group;" ::: "memory");
	for (; left > 0; left -= DEEP) {
		u32 as = address(room) + buffer, bs = as + 2 * BUFFER;
		buffer ^= 4 * BUFFER;
		if (left > DEEP) {
			fetch(&pa, buffer, left - DEEP, step_a);
			fetch(&pb, buffer, left - DEEP, step_b);
		}
		__asm__ volatile("cp.async.commit_group;" ::: "memory");
		__asm__ volatile("cp.async.wait_group 1;" ::: "memory");
		SYNC();
#pragma unroll
		for (u32 kk = 0; kk < DEEP; kk += 16) {
			u32 x[4][4], z[2][4];
#pragma unroll
			for (u32 i = 0; i < 4; i++) { /* 16 rows by 16: quarters ordered rows first */
				u32 row = wr + i * 16 + (q & 1) * 8, col = kk + (q >> 1) * 8;
				load4(x[i], as + 2 * (turn_a ? (col + r) * TURNED + row : (row + r) * PITCH + col), turn_a);
			}
#pragma unroll
			for (u32 j = 0; j < 2; j++) { /* 16 columns by 16: quarters ordered k first */
				u32 row = wc + j * 16 + (q >> 1) * 8, col = kk + (q & 1) * 8;
				load4(z[j], bs + 2 * (turn_b ? (col + r) * TURNED + row : (row + r) * PITCH + col), turn_b);
			}
#pragma unroll
			for (u32 i = 0; i < 4; i++) {
#pragma unroll
				for (u32 j = 0; j < 4; j++) {
					multiply(sum[i][j], x[i], z[j >> 1] + (j & 1) * 2, bf);
				}
			}
		}
		SYNC();
	}
#pragma unroll
	for (u32 i = 0; i < 4; i++) {
#pragma unroll
		for (u32 j = 0; j < 4; j++) {
#pragma unroll
			for (u32 h = 0; h < 2; h++) {
				i64 row = row0 + wr + i * 16 + h * 8 + (lane >> 2), col = col0 + wc + j * 8 + (lane & 3) * 2;
				u32 both; /* high half first */
				if (bf) {
					__asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(sum[i][j][2 * h + 1]), "f"(sum[i][j][2 * h]));
				} else {
					__asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(sum[i][j][2 * h + 1]), "f"(sum[i][j][2 * h]));
				}
				if (row < m && col < n) {
					y[row * n + col] = (u16)both;
				}
				if (row < m && col + 1 < n) {
					y[row * n + col + 1] = (u16)(both >> 16);
				}
			}
		}
	}
}

#define ARGS                                                                                                                                 \
	u16 G *y, const u16 G *a, const u16 G *b, i64 m, i64 n, i64 k, i64 lead_a, i64 lead_b, u32 e1, u32 e2, u32 e3, i64 x0, i64 x1, i64 x2, \
		i64 x3, i64 z0, i64 z1, i64 z2, i64 z3

#if defined(BF16)
#define IS_BF16 1
#else
#define IS_BF16 0
#endif

#define MATMUL(name, turn_a, turn_b)                                          \
	KERNEL name(ARGS) {                                                   \
		u32 batch = BIDZ, c3 = batch % e3, w = batch / e3, c2 = w % e2; \
		w /= e2;                                                      \
		u32 c1 = w % e1, c0 = w / e1;                                 \
		a += c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3;                   \
		b += c0 * z0 + c1 * z1 + c2 * z2 + c3 * z3;                   \
		product(y + (i64)batch * m * n, a, b, m, n, k, lead_a, lead_b, turn_a, turn_b, IS_BF16); \
	}

/* named by how the operands lie: n as [rows][k], t as [k][rows] */
MATMUL(matmul_nn, 0, 0)
MATMUL(matmul_nt, 0, 1)
MATMUL(matmul_tn, 1, 0)
MATMUL(matmul_tt, 1, 1)
