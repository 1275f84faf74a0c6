// serve.c: lets a Go test without cgo call a shared library in a child process. Requests come on standard input, answers go to standard output, both in
// little-endian binary: C name args (call a function of up to 12 integers or pointers), M n (memory), R address n (read), W address n bytes (write).
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void in(void *p, size_t n) {
	if (n && fread(p, n, 1, stdin) != 1) exit(0);
}
static uint64_t num(void) {
	uint64_t x;
	in(&x, 8);
	return x;
}
static void out(uint64_t x) { fwrite(&x, 8, 1, stdout); }

int main(int argc, char **argv) {
	void *dl = argc == 2 ? dlopen(argv[1], RTLD_NOW) : 0;
	if (!dl) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	for (int c; (c = getchar()) != EOF; fflush(stdout)) {
		switch (c) {
		case 'C': {
			char name[256] = {0};
			uint64_t n = num(), a[12] = {0};
			in(name, n < 255 ? n : 255);
			uint64_t k = num();
			for (uint64_t i = 0; i < k && i < 12; i++) a[i] = num();
			uint64_t (*f)() = dlsym(dl, name);
			out(f != 0);
			out(f ? f(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]) : 0);
			break;
		}
		case 'M': out((uint64_t)calloc(1, num() + 1)); break;
		case 'R': {
			uint64_t a = num(), n = num();
			fwrite((void *)a, 1, n, stdout);
			break;
		}
		case 'W': {
			uint64_t a = num(), n = num();
			in((void *)a, n);
			break;
		}
		default: return 2;
		}
	}
	return 0;
}
