// warp.h: what the files that execute kernels share.
#ifndef WARP_H
#define WARP_H
#include "fake.h"

// scell remembers, for 4 bytes of shared memory, the last writer and the last readers of two different warps.
typedef struct { uint32_t w, r[2]; } scell;

// One cp.async that has not been waited for.
typedef struct { uint32_t m, valid[PTX_LANES], group; uint64_t dst[PTX_LANES], src[PTX_LANES]; int bytes, line; } pendingcopy;
typedef struct { pendingcopy *p; int n, cap; uint32_t group; } copyqueue;

typedef struct blockctx {
	op *o;
	struct job *job;
	uint32_t run, index; // number of this block's run, and its place in the grid
	uint8_t *shared, *sinit;
	scell *scells;
	uint32_t sharedBytes, threads;
	ptx_warp *warps;
	int nwarps;
	uint32_t vc[32][32]; // per warp: what it knows of the others' clocks
	uint32_t clk[32];
	copyqueue copies[32];
	racememo memo;
	int hint;
	alloc *last;
	uint64_t moved;
	int fenced;
	uint32_t acquired;
} blockctx;

typedef struct job {
	op *o;
	uint32_t base, n; // block runs base to base + n - 1
	uint32_t next;
	int fault;
	CUresult code;
	uint32_t *released, nreleased; // order in which blocks fenced and then touched an atomic; for kernels that do
	uint64_t flops, moved, insts;
} job;

// within.c
int within_global(blockctx *, ptx_warp *, alloc *, uint64_t ptr, unsigned bytes, uint32_t thread, int write, int atomic, const void *data);
int within_shared(blockctx *, ptx_warp *, uint32_t off, unsigned bytes, uint32_t thread, int write, int atomic, const void *data);
void warp_tick(blockctx *, ptx_warp *);

// warp.c
int fault(ptx_warp *, uint32_t m, CUresult code, int counter, const char *format, ...) __attribute__((format(printf, 5, 6)));
const char *where(const ptx_warp *, uint32_t thread, char *buf, size_t n);
int access_lanes(ptx_warp *, uint32_t m, const uint64_t *a, int space, unsigned bytes, int write, int atomic);
uint8_t *lane_bytes(ptx_warp *, uint64_t a, int space, int lane);
int space_of(uint64_t *a, int space);
#define BLOCK(w) ((blockctx *)(w)->block)

// warpops.c
int warp_shfl(ptx_warp *, uint32_t m, int mode, uint32_t *dst, int32_t *ok, const uint32_t *a, const uint32_t *b, const uint32_t *c, const uint32_t *members);
int warp_vote(ptx_warp *, uint32_t m, int mode, void *dst, const int32_t *p, int negate, const uint32_t *members);
int warp_match(ptx_warp *, uint32_t m, int all, int bytes, uint32_t *dst, int32_t *ok, const void *a, const uint32_t *members);
int warp_redux(ptx_warp *, uint32_t m, int op, int type, uint32_t *dst, const uint32_t *a, const uint32_t *members);
int warp_sync(ptx_warp *, uint32_t m, const uint32_t *members);
int warp_mma(ptx_warp *, uint32_t m, int type, int k, void *const *d, const void *const *a, const void *const *b, const void *const *c);
int warp_ldmatrix(ptx_warp *, uint32_t m, int n, int trans, uint32_t *const *dst, const uint64_t *addr, int64_t off, int space);
// async.c
int warp_cpasync(ptx_warp *, uint32_t m, const uint64_t *dst, int64_t dstoff, const uint64_t *src, int64_t srcoff, int bytes, const uint32_t *valid);
int warp_cpcommit(ptx_warp *, uint32_t m);
int warp_cpwait(ptx_warp *, uint32_t m, int pending);
int warp_atom(ptx_warp *, uint32_t m, const uint64_t *addr, int64_t off, int space, int op, int type, void *dst, const void *a, const void *b);
#endif
