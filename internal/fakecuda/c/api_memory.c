// api_memory.c: allocations, copies, memsets.
#include "api.h"
#include <stdio.h>
#include <stdlib.h>

static int capturing(void) { // somebody captures and forbids what could disturb it
	for (int i = 1; i < STREAMS; i++)
		if (F_.streams[i] && F_.streams[i]->capturing && F_.streams[i]->flags >> 31 == 0) return 1;
	return 0;
}

API CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes) {
	ENTER();
	NEED(p && bytes);
	if (capturing()) RETURN(ERR_CAPTURE_UNSUPPORTED);
	size_t free_, total;
	mem_info(&free_, &total);
	if (bytes > free_) {
		COUNT(outOfMemory)++;
		report("out of device memory: %zu bytes asked for, %zu of %zu free", bytes, free_, total);
		RETURN(ERR_OUT_OF_MEMORY);
	}
	alloc *a = mem_new(bytes, MEM_DEVICE);
	if (!a) RETURN(ERR_OUT_OF_MEMORY);
	F_.deviceBytes += bytes;
	COUNT(deviceAllocations)++;
	COUNT(deviceBytes) = (int64_t)F_.deviceBytes;
	if (COUNT(deviceBytes) > COUNT(deviceHighWater)) COUNT(deviceHighWater) = COUNT(deviceBytes);
	*p = a->base;
	RETURN(OK);
}
ALIAS(cuMemAlloc, cuMemAlloc_v2);

API CUresult cuMemFree_v2(CUdeviceptr p) {
	ENTER();
	if (p == 0) RETURN(OK);
	alloc *a = mem_find(p);
	NEED(a && a->base == p && a->kind == MEM_DEVICE && a->map);
	if (capturing()) RETURN(ERR_CAPTURE_UNSUPPORTED);
	run_all();
	F_.deviceBytes -= a->bytes;
	COUNT(deviceBytes) = (int64_t)F_.deviceBytes;
	mem_delete(a);
	RETURN(OK);
}
ALIAS(cuMemFree, cuMemFree_v2);

API CUresult cuMemGetInfo_v2(size_t *free_, size_t *total) {
	ENTER();
	NEED(free_ && total);
	RETURN(mem_info(free_, total));
}
ALIAS(cuMemGetInfo, cuMemGetInfo_v2);

API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr p) {
	ENTER();
	alloc *a = mem_find(p);
	if (!a) RETURN(ERR_NOT_FOUND);
	if (base) *base = a->base;
	if (bytes) *bytes = a->bytes;
	RETURN(OK);
}
ALIAS(cuMemGetAddressRange, cuMemGetAddressRange_v2);

API CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned flags) {
	ENTER();
	NEED(p && bytes && flags < 8);
	if (capturing()) RETURN(ERR_CAPTURE_UNSUPPORTED);
	if (SET(pinnedLimitBytes) > 0 && COUNT(pinnedBytes) + (int64_t)bytes > SET(pinnedLimitBytes)) {
		COUNT(outOfMemory)++;
		report("out of pinned memory: %zu bytes asked for, %lld of %lld in use", bytes, (long long)COUNT(pinnedBytes), (long long)SET(pinnedLimitBytes));
		RETURN(ERR_OUT_OF_MEMORY);
	}
	alloc *a = mem_new(bytes, MEM_PINNED);
	if (!a) RETURN(ERR_OUT_OF_MEMORY);
	COUNT(pinnedAllocations)++;
	COUNT(pinnedBytes) += (int64_t)bytes;
	if (COUNT(pinnedBytes) > COUNT(pinnedHighWater)) COUNT(pinnedHighWater) = COUNT(pinnedBytes);
	*p = (void *)a->base;
	RETURN(OK);
}
API CUresult cuMemAllocHost_v2(void **p, size_t bytes) { return cuMemHostAlloc(p, bytes, 0); }
ALIAS(cuMemAllocHost, cuMemAllocHost_v2);

API CUresult cuMemFreeHost(void *p) {
	ENTER();
	alloc *a = mem_find((uint64_t)p);
	NEED(a && a->base == (uint64_t)p && a->kind == MEM_PINNED);
	run_all();
	COUNT(pinnedBytes) -= (int64_t)a->bytes;
	mem_delete(a);
	RETURN(OK);
}

API CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags) {
	ENTER();
	NEED(p && bytes && flags < 32);
	uint64_t lo = (uint64_t)p;
	for (int i = 0; i < F_.nallocs; i++)
		if (F_.allocs[i]->base < lo + bytes && lo < F_.allocs[i]->base + F_.allocs[i]->bytes) RETURN(ERR_HOST_REGISTERED);
	if (!mem_register(p, bytes)) RETURN(ERR_OUT_OF_MEMORY);
	COUNT(registrations)++;
	RETURN(OK);
}
ALIAS(cuMemHostRegister, cuMemHostRegister_v2);

API CUresult cuMemHostUnregister(void *p) {
	ENTER();
	alloc *a = mem_find((uint64_t)p);
	if (!a || a->base != (uint64_t)p || a->kind != MEM_REGISTERED) RETURN(ERR_HOST_NOT_REGISTERED);
	run_all();
	mem_delete(a);
	RETURN(OK);
}

API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *d, void *p, unsigned flags) {
	ENTER();
	alloc *a = mem_find((uint64_t)p);
	NEED(d && a && a->kind != MEM_DEVICE && flags == 0);
	*d = (uint64_t)p;
	RETURN(OK);
}
ALIAS(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2);

API CUresult cuMemHostGetFlags(unsigned *flags, void *p) {
	ENTER();
	alloc *a = mem_find((uint64_t)p);
	NEED(flags && a && a->kind == MEM_PINNED);
	*flags = 2;
	RETURN(OK);
}

API CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr p) {
	ENTER();
	alloc *a = mem_find(p);
	NEED(data && a);
	switch (attribute) {
	case 1: *(context **)data = current; break;
	case 2: *(unsigned *)data = a->kind == MEM_PINNED || a->kind == MEM_REGISTERED ? 1 : 2; break;
	case 3: case 4: *(uint64_t *)data = p; break;
	case 8: *(unsigned *)data = 0; break;
	case 9: *(int *)data = 0; break;
	case 11: *(uint64_t *)data = a->base; break;
	case 12: *(size_t *)data = a->bytes; break;
	case 13: *(unsigned *)data = 1; break;
	default: RETURN(ERR_INVALID_VALUE);
	}
	RETURN(OK);
}

// ---- copies
static int is_device(uint64_t p) {
	alloc *a = mem_find(p);
	return a && (a->kind == MEM_DEVICE || a->kind == MEM_CONST);
}

static int inside(uint64_t p, uint64_t bytes) {
	alloc *a = mem_find(p);
	return a && p - a->base + bytes <= a->bytes;
}

static CUresult refuse_bounds(const char *what, uint64_t p, uint64_t bytes, const char *position) {
	char c[256];
	COUNT(outOfBounds)++;
	report("out of bounds: %s of %llu bytes at %s%s%s", what, (unsigned long long)bytes, mem_text(p, c, sizeof c), position ? ", at " : "", position ? position : "");
	return ERR_INVALID_VALUE;
}

static CUresult finish(stream *s, uint32_t seq) { // the host waits
	run_until(seq);
	host_synced(seq, s->vc);
	return OK;
}

// copy enqueues a copy. An asynchronous one with host memory that is not pinned is counted, and waits as the real one does.
static CUresult copy(uint64_t dst, uint64_t src, size_t bytes, int dir, stream *s, int async) {
	if (bytes == 0) return OK;
	int devDst = dir == DIR_H2D || dir == DIR_D2D, devSrc = dir == DIR_D2H || dir == DIR_D2D, host = 0;
	if (devDst && (!is_device(dst) || !inside(dst, bytes))) return refuse_bounds("copy to the device", dst, bytes, s->position);
	if (devSrc && (!is_device(src) || !inside(src, bytes))) return refuse_bounds("copy from the device", src, bytes, s->position);
	if (!devDst && mem_find(dst) && !inside(dst, bytes)) return refuse_bounds("copy to the host", dst, bytes, s->position);
	if (!devSrc && mem_find(src) && !inside(src, bytes)) return refuse_bounds("copy from the host", src, bytes, s->position);
	if (!devDst && !mem_find(dst)) host = 1;
	if (!devSrc && !mem_find(src)) host = 1;
	if (host && s->capturing) return ERR_CAPTURE_UNSUPPORTED;
	if (async && host) {
		COUNT(unpinnedCopies)++;
		report("unpinned: an asynchronous copy of %zu bytes %s host memory at 0x%llx that is not pinned%s%s", bytes, devDst ? "from" : "to",
			(unsigned long long)(devDst ? src : dst), s->position ? ", at " : "", s->position ? s->position : "");
	}
	op *o = op_new(OP_COPY, s);
	o->dst = dst, o->src = src, o->bytes = bytes, o->dir = dir;
	CUresult e = op_enqueue(o);
	if (e) return e;
	COUNT(copies)++;
	return async && !host ? OK : s->capturing ? ERR_CAPTURE_UNSUPPORTED : finish(s, s->last);
}

static int direction(uint64_t dst, uint64_t src) {
	return is_device(dst) ? is_device(src) ? DIR_D2D : DIR_H2D : is_device(src) ? DIR_D2H : DIR_H2H;
}

API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *h, size_t n, void *st) {
	ENTER();
	STREAM(s, st);
	RETURN(copy(d, (uint64_t)h, n, DIR_H2D, s, 1));
}
ALIAS(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2);
API CUresult cuMemcpyDtoHAsync_v2(void *h, CUdeviceptr d, size_t n, void *st) {
	ENTER();
	STREAM(s, st);
	RETURN(copy((uint64_t)h, d, n, DIR_D2H, s, 1));
}
ALIAS(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2);
API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr e, size_t n, void *st) {
	ENTER();
	STREAM(s, st);
	RETURN(copy(d, e, n, DIR_D2D, s, 1));
}
ALIAS(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2);
API CUresult cuMemcpyAsync(CUdeviceptr d, CUdeviceptr e, size_t n, void *st) {
	ENTER();
	STREAM(s, st);
	RETURN(copy(d, e, n, direction(d, e), s, 1));
}
API CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void *h, size_t n) {
	ENTER();
	RETURN(copy(d, (uint64_t)h, n, DIR_H2D, stream_of(0), 0));
}
ALIAS(cuMemcpyHtoD, cuMemcpyHtoD_v2);
API CUresult cuMemcpyDtoH_v2(void *h, CUdeviceptr d, size_t n) {
	ENTER();
	RETURN(copy((uint64_t)h, d, n, DIR_D2H, stream_of(0), 0));
}
ALIAS(cuMemcpyDtoH, cuMemcpyDtoH_v2);
API CUresult cuMemcpyDtoD_v2(CUdeviceptr d, CUdeviceptr e, size_t n) {
	ENTER();
	RETURN(copy(d, e, n, DIR_D2D, stream_of(0), 0));
}
ALIAS(cuMemcpyDtoD, cuMemcpyDtoD_v2);
API CUresult cuMemcpy(CUdeviceptr d, CUdeviceptr e, size_t n) {
	ENTER();
	RETURN(copy(d, e, n, direction(d, e), stream_of(0), 0));
}

// ---- memsets
static CUresult set(CUdeviceptr d, uint32_t value, int unit, size_t n, void *st, int async) {
	ENTER();
	STREAM(s, st);
	if (n == 0) RETURN(OK);
	if (n > SIZE_MAX / 4 || !inside(d, n * (size_t)unit)) RETURN(refuse_bounds("memset", d, n * (size_t)unit, s->position));
	NEED(d % (uint64_t)unit == 0);
	op *o = op_new(OP_SET, s);
	o->dst = d, o->bytes = n * (size_t)unit, o->value = value, o->unit = unit;
	CUresult e = op_enqueue(o);
	COUNT(memsets)++;
	RETURN(e ? e : async ? OK : finish(s, s->last));
}
API CUresult cuMemsetD8_v2(CUdeviceptr d, unsigned char v, size_t n) { return set(d, v, 1, n, 0, 0); }
API CUresult cuMemsetD16_v2(CUdeviceptr d, unsigned short v, size_t n) { return set(d, v, 2, n, 0, 0); }
API CUresult cuMemsetD32_v2(CUdeviceptr d, unsigned v, size_t n) { return set(d, v, 4, n, 0, 0); }
API CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, void *s) { return set(d, v, 1, n, s, 1); }
API CUresult cuMemsetD16Async(CUdeviceptr d, unsigned short v, size_t n, void *s) { return set(d, v, 2, n, s, 1); }
API CUresult cuMemsetD32Async(CUdeviceptr d, unsigned v, size_t n, void *s) { return set(d, v, 4, n, s, 1); }
ALIAS(cuMemsetD8, cuMemsetD8_v2);
ALIAS(cuMemsetD16, cuMemsetD16_v2);
ALIAS(cuMemsetD32, cuMemsetD32_v2);

// ---- what a runtime may tell besides
API int fakePoison(void *st, CUdeviceptr p, size_t bytes) {
	ENTER();
	STREAM(s, st);
	if (bytes == 0) RETURN(OK);
	if (!inside(p, bytes)) RETURN(refuse_bounds("end of a buffer's life", p, bytes, s->position));
	op *o = op_new(OP_POISON, s);
	o->dst = p, o->bytes = bytes;
	RETURN(op_enqueue(o));
}

API int fakeName(CUdeviceptr p, size_t bytes, const char *name, int flags) {
	ENTER();
	NEED(name && bytes && inside(p, bytes));
	F_.names = realloc(F_.names, (size_t)(F_.nnames + 1) * sizeof *F_.names);
	F_.names[F_.nnames++] = (named){p, bytes, intern(name), flags};
	RETURN(OK);
}

API int fakeHostAccess(const void *p, size_t bytes, int write) {
	ENTER();
	alloc *a = mem_find((uint64_t)p);
	if (!a) RETURN(OK); // memory that the device cannot reach
	NEED((uint64_t)p - a->base + bytes <= a->bytes);
	extern void host_access(alloc *, uint64_t, uint64_t, int);
	host_access(a, (uint64_t)p, bytes, write);
	RETURN(OK);
}

API int64_t fakeSimPicos(void) {
	pthread_mutex_lock(&F_.lock);
	control_open();
	run_all();
	sim_resolve();
	int64_t t = F_.simHost;
	for (int i = 1; i < STREAMS; i++)
		if (F_.streams[i] && F_.streams[i]->simEnd > t) t = F_.streams[i]->simEnd;
	pthread_mutex_unlock(&F_.lock);
	return t;
}
