// api.c: start, devices, contexts, errors.
#include "api.h"
#include <stdio.h>
#include <stdlib.h>

__thread context *current;
static __thread context *stack[16];
static __thread int depth;

CUresult enter0(void) {
	pthread_mutex_lock(&F_.lock);
	control_open();
	control_poll();
	if (!F_.initialised) return ERR_NOT_INITIALIZED;
	return OK;
}

CUresult enter(void) {
	CUresult e = enter0();
	if (e) return e;
	if (F_.sticky) return F_.sticky;
	if (!current || current->magic != MAGIC_CONTEXT) return ERR_INVALID_CONTEXT;
	if (++F_.calls == SET(failAtCall)) {
		CUresult code = (CUresult)SET(failCode);
		report("call %lld fails with %d, as the test asked", (long long)F_.calls, (int)code);
		if (code >= 700 || code == 214) F_.sticky = code; // faults of the device stay, others are of this call alone
		return code;
	}
	COUNT(calls) = F_.calls;
	return OK;
}

CUresult leave(CUresult e) {
	if (e != OK && e != ERR_NOT_READY) COUNT(errors)++;
	if (e == OK && F_.sticky) e = F_.sticky; // the fault came while this call waited
	pthread_mutex_unlock(&F_.lock);
	return e;
}

API CUresult cuInit(unsigned flags) {
	pthread_mutex_lock(&F_.lock);
	control_open();
	control_poll();
	if (flags) RETURN(ERR_INVALID_VALUE);
	if (SET(devices) < 1) RETURN(ERR_NO_DEVICE);
	F_.initialised = 1;
	RETURN(OK);
}

API CUresult cuDriverGetVersion(int *v) {
	pthread_mutex_lock(&F_.lock);
	control_open();
	if (!v) RETURN(ERR_INVALID_VALUE);
	*v = (int)SET(driverVersion);
	pthread_mutex_unlock(&F_.lock);
	return OK;
}

// ---- devices
#define DEVICE(d) do { if ((d) < 0 || (d) >= SET(devices)) return leave(ERR_INVALID_DEVICE); } while (0)

API CUresult cuDeviceGetCount(int *n) {
	ENTER0();
	NEED(n);
	*n = (int)SET(devices);
	RETURN(OK);
}

API CUresult cuDeviceGet(CUdevice *d, int ordinal) {
	ENTER0();
	NEED(d);
	DEVICE(ordinal);
	*d = ordinal;
	RETURN(OK);
}

API CUresult cuDeviceGetName(char *name, int n, CUdevice d) {
	ENTER0();
	DEVICE(d);
	NEED(name && n > 0);
	snprintf(name, (size_t)n, "aitk fake GPU sm_%d", (int)SET(sm));
	RETURN(OK);
}

API CUresult cuDeviceGetUuid(uint8_t *uuid, CUdevice d) {
	ENTER0();
	DEVICE(d);
	NEED(uuid);
	memset(uuid, 0xfa, 16);
	uuid[15] = (uint8_t)d;
	RETURN(OK);
}
ALIAS(cuDeviceGetUuid_v2, cuDeviceGetUuid);

API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice d) {
	ENTER0();
	DEVICE(d);
	NEED(bytes);
	*bytes = (size_t)SET(vramBytes);
	RETURN(OK);
}
ALIAS(cuDeviceTotalMem, cuDeviceTotalMem_v2);

API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice d) {
	ENTER0();
	DEVICE(d);
	NEED(major && minor);
	*major = (int)SET(sm) / 10, *minor = (int)SET(sm) % 10;
	RETURN(OK);
}

API CUresult cuDeviceGetPCIBusId(char *s, int n, CUdevice d) {
	ENTER0();
	DEVICE(d);
	NEED(s && n > 0);
	snprintf(s, (size_t)n, "0000:%02x:00.0", 0xfa + d);
	RETURN(OK);
}

API CUresult cuDeviceCanAccessPeer(int *can, CUdevice a, CUdevice b) {
	ENTER0();
	DEVICE(a);
	DEVICE(b);
	NEED(can);
	*can = 0;
	RETURN(OK);
}

API CUresult cuDeviceGetAttribute(int *v, int attribute, CUdevice d) {
	static const struct { int a, v; } fixed[] = {
		{1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, // threads of a block, block and grid dimensions
		{9, 65536}, {10, 32}, {11, 2147483647}, {12, 65536},                               // constant memory, warp, pitch, registers of a block
		{13, 1500000}, {14, 512}, {15, 1}, {17, 0}, {18, 0}, {19, 1}, {20, 0}, {31, 1}, {32, 0}, {33, 0xfa}, {34, 0}, {35, 0}, {36, 1000000}, {37, 256},
		{38, 4 << 20}, {39, 1536}, {40, 2}, {41, 1}, {50, 0}, {78, 1}, {79, 1}, {80, 1}, {82, 65536}, {83, 1}, {84, 0}, {89, 1}, {90, 1}, {99, 1}, {106, 16},
	};
	ENTER0();
	DEVICE(d);
	NEED(v);
	switch (attribute) {
	case 8: *v = 49152; RETURN(OK);                        // shared memory of a block without asking
	case 16: *v = (int)SET(multiprocessors); RETURN(OK);
	case 75: *v = (int)SET(sm) / 10; RETURN(OK);
	case 76: *v = (int)SET(sm) % 10; RETURN(OK);
	case 81: *v = (int)SET(sharedOptinBytes) + 1024; RETURN(OK);
	case 97: *v = (int)SET(sharedOptinBytes); RETURN(OK);
	}
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		if (fixed[i].a == attribute) {
			*v = fixed[i].v;
			RETURN(OK);
		}
	RETURN(ERR_INVALID_VALUE);
}

// ---- contexts
static context *new_context(unsigned flags, int primary) {
	context *c = calloc(1, sizeof *c);
	c->magic = MAGIC_CONTEXT, c->flags = flags, c->primary = primary;
	if (!F_.streams[1]) stream_new(0, 0, 0); // the default stream
	COUNT(contexts)++;
	return c;
}

// The last context takes everything with it.
static void end_context(context *c) {
	run_all();
	if (current == c) current = 0;
	if (--COUNT(contexts) == 0) {
		for (int i = 2; i < STREAMS; i++)
			if (F_.streams[i]) COUNT(leakedStreams) += !F_.streams[i]->hidden, stream_delete(F_.streams[i]);
		while (F_.nallocs) {
			alloc *a = F_.allocs[0];
			if (a->kind == MEM_DEVICE || a->kind == MEM_PINNED) COUNT(leakedAllocations)++;
			mem_delete(a);
		}
		F_.deviceBytes = 0;
		COUNT(deviceBytes) = COUNT(pinnedBytes) = 0;
		F_.sticky = 0; // as a new process would find it
	}
	c->magic = 0; // never freed: a stale handle must be recognised
}

API CUresult cuCtxCreate_v2(context **c, unsigned flags, CUdevice d) {
	ENTER0();
	DEVICE(d);
	NEED(c);
	if (F_.sticky) RETURN(F_.sticky);
	*c = new_context(flags, 0);
	if (depth < 16) stack[depth++] = current;
	current = *c;
	RETURN(OK);
}
ALIAS(cuCtxCreate, cuCtxCreate_v2);

API CUresult cuCtxDestroy_v2(context *c) {
	ENTER0();
	if (!c || c->magic != MAGIC_CONTEXT || c->primary) RETURN(ERR_INVALID_CONTEXT);
	end_context(c);
	RETURN(OK);
}
ALIAS(cuCtxDestroy, cuCtxDestroy_v2);

API CUresult cuCtxPushCurrent_v2(context *c) {
	ENTER0();
	if (!c || c->magic != MAGIC_CONTEXT) RETURN(ERR_INVALID_CONTEXT);
	if (depth < 16) stack[depth++] = current;
	current = c;
	RETURN(OK);
}
ALIAS(cuCtxPushCurrent, cuCtxPushCurrent_v2);

API CUresult cuCtxPopCurrent_v2(context **c) {
	ENTER0();
	if (!current) RETURN(ERR_INVALID_CONTEXT);
	if (c) *c = current;
	current = depth > 0 ? stack[--depth] : 0;
	RETURN(OK);
}
ALIAS(cuCtxPopCurrent, cuCtxPopCurrent_v2);

API CUresult cuCtxSetCurrent(context *c) {
	ENTER0();
	if (c && c->magic != MAGIC_CONTEXT) RETURN(ERR_INVALID_CONTEXT);
	current = c;
	RETURN(OK);
}

API CUresult cuCtxGetCurrent(context **c) {
	ENTER0();
	NEED(c);
	*c = current;
	RETURN(OK);
}

API CUresult cuCtxGetDevice(CUdevice *d) {
	ENTER();
	NEED(d);
	*d = 0;
	RETURN(OK);
}

API CUresult cuCtxGetFlags(unsigned *f) {
	ENTER();
	NEED(f);
	*f = current->flags;
	RETURN(OK);
}

API CUresult cuCtxGetApiVersion(context *c, unsigned *v) {
	ENTER0();
	if (c && c->magic != MAGIC_CONTEXT) RETURN(ERR_INVALID_CONTEXT);
	NEED(v);
	*v = 3020;
	RETURN(OK);
}

API CUresult cuCtxSynchronize(void) {
	ENTER();
	for (int i = 1; i < STREAMS; i++)
		if (F_.streams[i] && F_.streams[i]->capturing) {
			F_.streams[i]->capturing->dead = 1;
			RETURN(ERR_CAPTURE_UNSUPPORTED);
		}
	run_all();
	COUNT(synchronizations)++;
	for (int i = 1; i < STREAMS; i++)
		if (F_.streams[i]) host_synced(F_.streams[i]->last, F_.streams[i]->vc);
	RETURN(OK);
}

API CUresult cuCtxGetLimit(size_t *v, int limit) {
	ENTER();
	NEED(v);
	(void)limit;
	*v = 1 << 20;
	RETURN(OK);
}

API CUresult cuCtxSetLimit(int limit, size_t v) {
	ENTER();
	(void)limit, (void)v;
	RETURN(OK);
}

static int cacheConfig, sharedConfig;
API CUresult cuCtxGetCacheConfig(int *v) { ENTER(); NEED(v); *v = cacheConfig; RETURN(OK); }
API CUresult cuCtxSetCacheConfig(int v) { ENTER(); cacheConfig = v; RETURN(OK); }
API CUresult cuCtxGetSharedMemConfig(int *v) { ENTER(); NEED(v); *v = sharedConfig; RETURN(OK); }
API CUresult cuCtxSetSharedMemConfig(int v) { ENTER(); sharedConfig = v; RETURN(OK); }

API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
	ENTER();
	if (least) *least = 0;
	if (greatest) *greatest = -5;
	RETURN(OK);
}

API CUresult cuDevicePrimaryCtxRetain(context **c, CUdevice d) {
	ENTER0();
	DEVICE(d);
	NEED(c);
	if (F_.sticky) RETURN(F_.sticky);
	if (!F_.primary) F_.primary = new_context(0, 1);
	F_.primary->refs++;
	*c = F_.primary;
	RETURN(OK);
}

static void end_primary(void) {
	context *p = F_.primary;
	F_.primary = 0;
	end_context(p);
}

API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
	ENTER0();
	DEVICE(d);
	if (!F_.primary) RETURN(ERR_INVALID_CONTEXT);
	if (--F_.primary->refs == 0) end_primary();
	RETURN(OK);
}
ALIAS(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);

API CUresult cuDevicePrimaryCtxReset_v2(CUdevice d) {
	ENTER0();
	DEVICE(d);
	if (F_.primary) end_primary();
	RETURN(OK);
}
ALIAS(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2);

API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice d, unsigned flags) {
	ENTER0();
	DEVICE(d);
	if (F_.primary) F_.primary->flags = flags;
	RETURN(OK);
}
ALIAS(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);

API CUresult cuDevicePrimaryCtxGetState(CUdevice d, unsigned *flags, int *active) {
	ENTER0();
	DEVICE(d);
	if (flags) *flags = F_.primary ? F_.primary->flags : 0;
	if (active) *active = F_.primary != 0;
	RETURN(OK);
}

// ---- errors
static const struct { CUresult code; const char *name, *text; } errors[] = {
	{OK, "CUDA_SUCCESS", "no error"},
	{ERR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{ERR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{ERR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{ERR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{ERR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{ERR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	{ERR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{ERR_NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
	{ERR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
	{ERR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain"},
	{ERR_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
	{ERR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{ERR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{ERR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
	{ERR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	{ERR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
	{ERR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
	{ERR_HOST_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"},
	{ERR_HOST_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"},
	{ERR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
	{ERR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	{ERR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{ERR_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
	{ERR_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
	{ERR_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"},
	{ERR_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
	{ERR_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"},
	{ERR_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing blocking stream"},
};

static CUresult error_text(CUresult e, const char **s, int text) {
	if (!s) return ERR_INVALID_VALUE;
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == e) {
			*s = text ? errors[i].text : errors[i].name;
			return OK;
		}
	*s = 0;
	return ERR_INVALID_VALUE;
}
API CUresult cuGetErrorName(CUresult e, const char **s) { return error_text(e, s, 0); }
API CUresult cuGetErrorString(CUresult e, const char **s) { return error_text(e, s, 1); }
