// api_module.c: modules from PTX text, functions, launches.
#include "api.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// The hash that names a translated module in the cache; fakecuda.go computes the same.
static void hash_name(const char *text, size_t n, char *out) {
	uint64_t a = 1469598103934665603ull, b = 0x9e3779b97f4a7c15ull;
	for (size_t i = 0; i < n; i++) {
		a = (a ^ (uint8_t)text[i]) * 1099511628211ull;
		b = (b + (uint8_t)text[i]) * 0x100000001b3ull ^ b >> 31;
	}
	sprintf(out, "%016llx%016llx", (unsigned long long)a, (unsigned long long)b);
}

static void read_all(int fd, char *buf, size_t n) {
	size_t k = 0;
	char waste[512];
	for (;;) {
		ssize_t r = k + 1 < n ? read(fd, buf + k, n - 1 - k) : read(fd, waste, sizeof waste);
		if (r < 0 && errno == EINTR) continue;
		if (r <= 0) break;
		if (k + 1 < n) k += (size_t)r;
	}
	buf[k] = 0;
}

// translate makes path from the text by the translator that the control file names. On failure log holds its words.
static int translate(const char *text, size_t n, const char *path, char *log, size_t logn) {
	const char *ptxc = control_string(STRING_translator);
	char in[STRING_BYTES + 128];
	if (!*ptxc) return snprintf(log, logn, "no translator is set: build the fake with fakecuda.Build and set AITK_FAKE"), 1;
	snprintf(in, sizeof in, "%s.%d.ptx", path, (int)getpid());
	FILE *f = fopen(in, "w");
	if (!f || fwrite(text, 1, n, f) != n || fclose(f)) return snprintf(log, logn, "%s cannot be written", in), 1;
	int fd[2];
	if (pipe(fd)) return 1;
	posix_spawn_file_actions_t act;
	posix_spawn_file_actions_init(&act);
	posix_spawn_file_actions_adddup2(&act, fd[1], 1);
	posix_spawn_file_actions_adddup2(&act, fd[1], 2);
	posix_spawn_file_actions_addclose(&act, fd[0]);
	char *argv[] = {(char *)ptxc, in, (char *)path, 0};
	pid_t pid;
	int e = posix_spawn(&pid, ptxc, &act, 0, argv, environ), status = 1;
	posix_spawn_file_actions_destroy(&act);
	close(fd[1]);
	if (e) snprintf(log, logn, "%s cannot be run", ptxc);
	else {
		read_all(fd[0], log, logn);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
	}
	close(fd[0]);
	unlink(in);
	COUNT(translations)++;
	return e || status != 0;
}

// The newest PTX that a driver reads.
static int max_ptx(int driver) {
	static const struct { int driver, ptx; } table[] = {{13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85}, {12040, 84}, {12030, 83}, {12020, 82},
		{12010, 81}, {12000, 80}, {11080, 78}, {11070, 77}, {11060, 76}, {11050, 75}, {11040, 74}, {11030, 73}, {11020, 72}, {11010, 71}, {11000, 70},
		{10020, 65}, {10010, 64}, {0, 63}};
	int i = 0;
	while (driver < table[i].driver) i++;
	return table[i].ptx;
}

static void put_log(unsigned n, const int *options, void **values, const char *text) {
	char *buf = 0;
	size_t size = 0;
	for (unsigned i = 0; i < n; i++) {
		if (options[i] == 5) buf = values[i];
		if (options[i] == 6) size = (size_t)(uintptr_t)values[i];
	}
	if (buf && size) snprintf(buf, size, "%s", text);
	for (unsigned i = 0; i < n; i++)
		if (options[i] == 6) values[i] = (void *)(uintptr_t)(buf && size ? strlen(buf) : 0);
}

static CUresult load(module **out, const char *text, unsigned n, const int *options, void **values) {
	char path[STRING_BYTES + 64], name[40], log[8192] = "";
	if (strncmp(text, "\177ELF", 4) == 0 || (uint8_t)text[0] == 0x50) return ERR_INVALID_IMAGE; // binaries have no PTX to run
	size_t len = strlen(text);
	hash_name(text, len, name);
	snprintf(path, sizeof path, "%s/%s.so", control_string(STRING_cache), name);
	if (access(path, R_OK) && translate(text, len, path, log, sizeof log)) {
		put_log(n, options, values, log);
		report("module does not load: %.600s", log);
		return ERR_INVALID_PTX;
	}
	void *dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const ptx_module *info = dl ? dlsym(dl, "ptx_module_info") : 0;
	if (!info || info->abi != PTX_ABI) {
		put_log(n, options, values, dl ? "translated by another version" : dlerror());
		return ERR_INVALID_IMAGE;
	}
	if ((int)info->version > max_ptx((int)SET(driverVersion))) {
		snprintf(log, sizeof log, "PTX version %u.%u is newer than this driver reads", info->version / 10, info->version % 10);
		put_log(n, options, values, log);
		return ERR_UNSUPPORTED_PTX_VERSION;
	}
	if ((int64_t)info->sm > SET(sm)) {
		snprintf(log, sizeof log, "target sm_%u is above this device's sm_%d", info->sm, (int)SET(sm));
		put_log(n, options, values, log);
		return ERR_INVALID_PTX;
	}
	module *m = calloc(1, sizeof *m);
	m->magic = MAGIC_MODULE, m->dl = dl, m->info = info;
	m->fs = calloc(info->nentries + 1, sizeof *m->fs);
	for (uint32_t i = 0; i < info->nentries; i++) m->fs[i] = (function){MAGIC_FUNCTION, m, &info->entries[i], 49152 - (int)info->entries[i].shared_bytes};
	m->vars = calloc(info->nvars + 1, sizeof *m->vars);
	for (uint32_t i = 0; i < info->nvars; i++) {
		const ptx_var *v = &info->vars[i];
		alloc *a = m->vars[i] = mem_new(v->bytes, MEM_DEVICE);
		if (!a) return ERR_OUT_OF_MEMORY;
		memset((void *)a->base, 0, v->bytes); // variables without a value are zero
		memcpy((void *)a->base, v->init, v->init_bytes);
		memset(a->init, 1, v->bytes);
		if (v->constant) a->kind = MEM_CONST;
		*v->address = a->base;
	}
	put_log(n, options, values, "");
	COUNT(modules)++;
	*out = m;
	return OK;
}

API CUresult cuModuleLoadDataEx(module **m, const void *image, unsigned n, int *options, void **values) {
	ENTER();
	NEED(m && image);
	RETURN(load(m, image, n, options, values));
}
API CUresult cuModuleLoadData(module **m, const void *image) { return cuModuleLoadDataEx(m, image, 0, 0, 0); }

API CUresult cuModuleLoad(module **m, const char *file) {
	ENTER();
	NEED(m && file);
	FILE *f = fopen(file, "r");
	if (!f) RETURN(ERR_FILE_NOT_FOUND);
	fseek(f, 0, SEEK_END);
	long n = ftell(f);
	rewind(f);
	char *text = calloc(1, (size_t)n + 1);
	size_t got = fread(text, 1, (size_t)n, f);
	fclose(f);
	CUresult e = got == (size_t)n ? load(m, text, 0, 0, 0) : ERR_FILE_NOT_FOUND;
	free(text);
	RETURN(e);
}

API CUresult cuModuleUnload(module *m) {
	ENTER();
	if (!m || m->magic != MAGIC_MODULE) RETURN(ERR_INVALID_HANDLE);
	run_all();
	for (uint32_t i = 0; i < m->info->nvars; i++)
		if (mem_find(m->vars[i]->base) == m->vars[i]) mem_delete(m->vars[i]);
	m->magic = 0; // code and handles stay: the race check may name its kernels long after
	for (uint32_t i = 0; i < m->info->nentries; i++) m->fs[i].magic = 0;
	RETURN(OK);
}

API CUresult cuModuleGetFunction(function **f, module *m, const char *name) {
	ENTER();
	if (!m || m->magic != MAGIC_MODULE) RETURN(ERR_INVALID_HANDLE);
	NEED(f && name);
	for (uint32_t i = 0; i < m->info->nentries; i++)
		if (!strcmp(m->info->entries[i].name, name)) {
			*f = &m->fs[i];
			RETURN(OK);
		}
	RETURN(ERR_NOT_FOUND);
}

API CUresult cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *bytes, module *m, const char *name) {
	ENTER();
	if (!m || m->magic != MAGIC_MODULE) RETURN(ERR_INVALID_HANDLE);
	NEED(name);
	for (uint32_t i = 0; i < m->info->nvars; i++)
		if (!strcmp(m->info->vars[i].name, name)) {
			if (p) *p = m->vars[i]->base;
			if (bytes) *bytes = m->vars[i]->bytes;
			RETURN(OK);
		}
	RETURN(ERR_NOT_FOUND);
}
ALIAS(cuModuleGetGlobal, cuModuleGetGlobal_v2);

// ---- functions
#define FUNCTION(f) do { if (!(f) || (f)->magic != MAGIC_FUNCTION) return leave(ERR_INVALID_HANDLE); } while (0)

static int max_threads(const ptx_entry *e) {
	uint32_t req = e->reqntid[0] * e->reqntid[1] * e->reqntid[2];
	return req ? (int)req : e->maxntid ? (int)e->maxntid : 1024;
}

API CUresult cuFuncGetAttribute(int *v, int attribute, function *f) {
	ENTER();
	FUNCTION(f);
	NEED(v);
	switch (attribute) {
	case 0: *v = max_threads(f->e); break;
	case 1: *v = (int)f->e->shared_bytes; break;
	case 2: *v = 0; break;
	case 3: *v = (int)f->e->local_bytes; break;
	case 4: *v = f->e->nregs < 255 ? (int)f->e->nregs : 255; break; // virtual registers; only ptxas knows the real number
	case 5: *v = (int)f->mod->info->version; break;
	case 6: *v = (int)f->mod->info->sm; break;
	case 7: *v = 0; break;
	case 8: *v = f->maxDynamic; break;
	case 9: *v = -1; break;
	default: RETURN(ERR_INVALID_VALUE);
	}
	RETURN(OK);
}

API CUresult cuFuncSetAttribute(function *f, int attribute, int v) {
	ENTER();
	FUNCTION(f);
	if (attribute == 9) RETURN(v >= -1 && v <= 100 ? OK : ERR_INVALID_VALUE);
	NEED(attribute == 8 && v >= 0 && v + (int64_t)f->e->shared_bytes <= SET(sharedOptinBytes));
	f->maxDynamic = v;
	RETURN(OK);
}
API CUresult cuFuncSetCacheConfig(function *f, int v) { ENTER(); FUNCTION(f); (void)v; RETURN(OK); }
API CUresult cuFuncSetSharedMemConfig(function *f, int v) { ENTER(); FUNCTION(f); (void)v; RETURN(OK); }

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, function *f, int threads, size_t dynamic, unsigned flags) {
	ENTER();
	FUNCTION(f);
	NEED(n && threads > 0 && flags <= 1);
	int64_t shared = f->e->shared_bytes + (int64_t)dynamic, byThreads = 1536 / threads, byShared = shared ? (SET(sharedOptinBytes) + 1024) / (shared + 1024) : 32;
	*n = (int)(byThreads < byShared ? byThreads : byShared);
	if (*n > 16) *n = 16;
	RETURN(OK);
}
API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, function *f, int threads, size_t dynamic) {
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, f, threads, dynamic, 0);
}

static CUresult refuse(const function *f, const stream *s, const char *why) {
	COUNT(refusedLaunches)++;
	report("launch of %s%s%s refused: %s", f->e->name, s->position ? " at " : "", s->position ? s->position : "", why);
	return ERR_INVALID_VALUE;
}

API CUresult cuLaunchKernel(function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned dynamic, void *st, void **params, void **extra) {
	ENTER();
	FUNCTION(f);
	STREAM(s, st);
	const ptx_entry *e = f->e;
	uint64_t threads = (uint64_t)bx * by * bz, blocks = (uint64_t)gx * gy * gz;
	char why[160];
	if (!gx || !gy || !gz || gx > 2147483647u || gy > 65535 || gz > 65535 || blocks > 0x7fffffff)
		RETURN((snprintf(why, sizeof why, "grid (%u,%u,%u)", gx, gy, gz), refuse(f, s, why)));
	if (!bx || !by || !bz || bx > 1024 || by > 1024 || bz > 64 || threads > 1024 || threads > (uint64_t)max_threads(e))
		RETURN((snprintf(why, sizeof why, "block (%u,%u,%u), the kernel allows %d threads", bx, by, bz, max_threads(e)), refuse(f, s, why)));
	if (e->reqntid[0] && (e->reqntid[0] != bx || e->reqntid[1] != by || e->reqntid[2] != bz))
		RETURN((snprintf(why, sizeof why, "block (%u,%u,%u), the kernel requires (%u,%u,%u)", bx, by, bz, e->reqntid[0], e->reqntid[1], e->reqntid[2]), refuse(f, s, why)));
	if ((int64_t)dynamic > f->maxDynamic)
		RETURN((snprintf(why, sizeof why, "%u bytes of dynamic shared memory, cuFuncSetAttribute allows %d", dynamic, f->maxDynamic), refuse(f, s, why)));
	uint8_t *param = calloc(1, e->param_bytes + 8);
	if (params) {
		for (uint32_t i = 0; i < e->nparams; i++) memcpy(param + e->params[i].offset, params[i], e->params[i].bytes);
	} else if (extra) {
		void *buf = 0;
		size_t n = 0;
		for (int i = 0; extra[i]; i += 2) {
			if ((uintptr_t)extra[i] == 1) buf = extra[i + 1];
			else if ((uintptr_t)extra[i] == 2) n = *(size_t *)extra[i + 1];
			else break;
		}
		if (!buf || n > e->param_bytes) {
			free(param);
			RETURN(refuse(f, s, "argument buffer of another size"));
		}
		memcpy(param, buf, n);
	} else if (e->nparams) {
		free(param);
		RETURN(refuse(f, s, "no arguments"));
	}
	op *o = op_new(OP_KERNEL, s);
	o->f = f, o->dynamic = dynamic, o->param = param;
	o->grid[0] = gx, o->grid[1] = gy, o->grid[2] = gz, o->block[0] = bx, o->block[1] = by, o->block[2] = bz;
	COUNT(launches)++;
	RETURN(op_enqueue(o));
}
