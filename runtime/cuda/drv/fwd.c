//go:build cuda && linux

// Slots of the driver functions, and cuInit, which fills them.
#include "fwd.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static CUresult absent(void) { return CUDA_ERROR_NO_DEVICE; }
static CUresult missing(void) { return CUDA_ERROR_NOT_FOUND; }

#define X(name) __attribute__((visibility("hidden"))) void *aitk_slot_##name = (void *)absent;
#include "symbols.h"
#undef X

static const struct {
	void **slot;
	const char *name;
} table[] = {
#define X(name) {&aitk_slot_##name, #name},
#include "symbols.h"
#undef X
};

static CUresult status = CUDA_ERROR_NOT_INITIALIZED;
static char library[512], text[1024];
static int absentees;
static int (*expect)(CUstream, const char *, int64_t, int, const struct aitk_range *); // NULL: a driver that does not check
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_driver(void) {
	const char *name = getenv("AITK_LIBCUDA");
	if (!name || !*name) {
		name = "libcuda.so.1";
	}
	snprintf(library, sizeof library, "%s", name);
	void *h = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!h) {
		status = CUDA_ERROR_NO_DEVICE;
		const char *why = dlerror();
		snprintf(text, sizeof text, "%s", why ? why : "dlopen failed");
		return;
	}
	CUresult (*init)(unsigned int) = (CUresult(*)(unsigned int))dlsym(h, "cuInit");
	if (!init) {
		status = CUDA_ERROR_NOT_FOUND;
		snprintf(text, sizeof text, "%s has no cuInit", name);
		return;
	}
	status = init(0);
	if (status != CUDA_SUCCESS) {
		CUresult (*say)(CUresult, const char **) = (CUresult(*)(CUresult, const char **))dlsym(h, "cuGetErrorString");
		const char *why = NULL;
		if (say) {
			say(status, &why);
		}
		snprintf(text, sizeof text, "cuInit of %s answers %d%s%s", name, (int)status, why ? ": " : "", why ? why : "");
		return; // slots stay absent: nobody gets past a driver that did not start
	}
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		void *f = dlsym(h, table[i].name);
		*table[i].slot = f ? f : (void *)missing;
		absentees += !f;
	}
	expect = (int (*)(CUstream, const char *, int64_t, int, const struct aitk_range *))dlsym(h, "fakeExpect");
}

// cuInit is what cu calls before main. It says yes whatever it finds, since cu would end the process; the truth is in aitk_status.
__attribute__((visibility("hidden"))) CUresult CUDAAPI cuInit(unsigned int flags) {
	(void)flags;
	pthread_once(&once, open_driver);
	return CUDA_SUCCESS;
}

CUresult aitk_status(void) {
	cuInit(0);
	return status;
}
const char *aitk_library(void) { return library; }
const char *aitk_text(void) { return text; }
int aitk_absentees(void) { return absentees; }
int aitk_checks(void) {
	cuInit(0);
	return expect != NULL;
}

CUresult aitk_expect(CUstream stream, const char *position, int64_t picos, int n, const struct aitk_range *ranges) {
	return expect ? (CUresult)expect(stream, position, picos, n, ranges) : CUDA_SUCCESS;
}
