// memory.c: allocations, their shadows, names, and what memory is worth before anybody writes it.
#include "fake.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE 4096ull
#define GUARD (16 * PAGE)

// Host memory begins with a pattern that is NaN in every float format and no number that programs like; so bytes that nobody wrote are
// known even though the host's own writes cannot be seen.
#define HOST_POISON 0xfffafffdfffbfff9ull

static void *lazy(size_t bytes) { // zero pages that cost nothing until touched
	void *p = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? 0 : p;
}

static size_t vcBytes(const alloc *a) { return (a->bytes / 16 + 2) * sizeof(vcell); }
static size_t bcBytes(const alloc *a) { return (a->bytes / 4 + 8) * sizeof(bcell); }

static alloc *enter_alloc(alloc *a) {
	a->init = lazy(a->bytes + 64);
	a->vc = lazy(vcBytes(a));
	a->bc = lazy(bcBytes(a));
	if (!a->init || !a->vc || !a->bc) return 0;
	if (F_.nallocs == F_.callocs) {
		F_.callocs = F_.callocs ? 2 * F_.callocs : 16;
		F_.allocs = realloc(F_.allocs, (size_t)F_.callocs * sizeof *F_.allocs);
	}
	int i = F_.nallocs++;
	for (; i > 0 && F_.allocs[i - 1]->base > a->base; i--) F_.allocs[i] = F_.allocs[i - 1];
	F_.allocs[i] = a;
	return a;
}

// mem_new makes device or pinned memory between guard pages, poisoned. 0 when the machine itself has none left.
alloc *mem_new(uint64_t bytes, int kind) {
	alloc *a = calloc(1, sizeof *a);
	a->bytes = bytes, a->kind = kind;
	a->mapBytes = (bytes + PAGE - 1) / PAGE * PAGE + 2 * GUARD;
	char *p = mmap(0, a->mapBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED || mprotect(p + GUARD, a->mapBytes - 2 * GUARD, PROT_READ | PROT_WRITE)) return 0;
	a->map = p;
	a->base = (uint64_t)(p + GUARD);
	if (!enter_alloc(a)) return 0;
	mem_poison(a, a->base, bytes);
	return a;
}

// mem_register takes host memory of the program's own; its bytes count as written.
alloc *mem_register(void *p, uint64_t bytes) {
	alloc *a = calloc(1, sizeof *a);
	a->base = (uint64_t)p, a->bytes = bytes, a->kind = MEM_REGISTERED;
	return enter_alloc(a);
}

void mem_delete(alloc *a) {
	int i = 0;
	while (F_.allocs[i] != a) i++;
	for (F_.nallocs--; i < F_.nallocs; i++) F_.allocs[i] = F_.allocs[i + 1];
	if (a->map) munmap(a->map, a->mapBytes);
	munmap(a->init, a->bytes + 64);
	munmap(a->vc, vcBytes(a));
	munmap(a->bc, bcBytes(a));
	int keep = 0;
	for (int k = 0; k < F_.nnames; k++)
		if (F_.names[k].ptr < a->base || F_.names[k].ptr >= a->base + a->bytes) F_.names[keep++] = F_.names[k];
	F_.nnames = keep;
	free(a);
}

// mem_find is the allocation that holds an address, 0 if none does.
alloc *mem_find(uint64_t ptr) {
	int lo = 0, hi = F_.nallocs;
	while (lo < hi) {
		int mid = (lo + hi) / 2;
		if (F_.allocs[mid]->base <= ptr) lo = mid + 1;
		else hi = mid;
	}
	if (lo == 0) return 0;
	alloc *a = F_.allocs[lo - 1];
	return ptr - a->base < a->bytes ? a : 0;
}

// mem_poison makes bytes worth nothing: NaN in every float format of device memory, and uninitialised.
void mem_poison(alloc *a, uint64_t ptr, uint64_t bytes) {
	memset(a->init + (ptr - a->base), 0, bytes);
	if (a->kind == MEM_PINNED) {
		for (uint64_t i = 0; i < bytes; i++) ((uint8_t *)ptr)[i] = (uint8_t)(HOST_POISON >> (8 * ((ptr + i) & 7)));
	} else {
		memset((void *)ptr, 0xff, bytes);
	}
}

const named *mem_name(uint64_t ptr) {
	for (int k = F_.nnames - 1; k >= 0; k--) // a later name lies over an earlier one
		if (ptr - F_.names[k].ptr < F_.names[k].bytes) return &F_.names[k];
	return 0;
}

// mem_text says where an address lies: as far as somebody named it, and in which allocation.
const char *mem_text(uint64_t ptr, char *buf, size_t n) {
	static const char *kinds[] = {"device", "pinned host", "registered host", "constant"};
	const named *m = mem_name(ptr);
	alloc *a = mem_find(ptr);
	int k = snprintf(buf, n, "0x%llx", (unsigned long long)ptr);
	if (m) k += snprintf(buf + k, n - (size_t)k, " (%s + %llu)", m->name, (unsigned long long)(ptr - m->ptr));
	if (a) {
		snprintf(buf + k, n - (size_t)k, " at offset %llu of %llu %s bytes", (unsigned long long)(ptr - a->base), (unsigned long long)a->bytes, kinds[a->kind]);
		return buf;
	}
	for (int i = 0; i < F_.nallocs; i++) {
		a = F_.allocs[i];
		if (ptr >= a->base + a->bytes && ptr - a->base - a->bytes < GUARD) {
			snprintf(buf + k, n - (size_t)k, ", %llu bytes past the end of %llu %s bytes", (unsigned long long)(ptr - a->base - a->bytes), (unsigned long long)a->bytes, kinds[a->kind]);
			return buf;
		}
		if (ptr < a->base && a->base - ptr <= GUARD) {
			snprintf(buf + k, n - (size_t)k, ", %llu bytes before %llu %s bytes", (unsigned long long)(a->base - ptr), (unsigned long long)a->bytes, kinds[a->kind]);
			return buf;
		}
	}
	snprintf(buf + k, n - (size_t)k, ", in no allocation");
	return buf;
}

// host_sum is a checksum of host memory, to notice that the host changed the source of a copy that has not run.
uint64_t host_sum(uint64_t ptr, uint64_t bytes) {
	uint64_t h = bytes, x;
	const uint8_t *p = (const uint8_t *)ptr;
	uint64_t i = 0;
	for (; i + 8 <= bytes; i += 8) {
		memcpy(&x, p + i, 8);
		h = (h ^ x) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	for (; i < bytes; i++) h = (h ^ p[i]) * 0x100000001b3ull;
	return h;
}

CUresult mem_info(size_t *free_, size_t *total) {
	uint64_t all = (uint64_t)SET(vramBytes), reserve = (uint64_t)SET(contextBytes), used = F_.deviceBytes + reserve;
	*total = all;
	*free_ = used < all ? all - used : 0;
	return OK;
}

// Whether eight aligned bytes of host memory still hold their poison.
int host_poisoned(uint64_t ptr) {
	uint64_t x;
	memcpy(&x, (void *)(ptr & ~7ull), 8);
	return x == HOST_POISON;
}
