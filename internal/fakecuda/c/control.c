// control.c: the control file that the Go side shares, reports, names that live for ever, random numbers.
#include "fake.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

fake F_ = {.lock = PTHREAD_MUTEX_INITIALIZER};

// The file: settings, counters, strings, reports. Without one the fake keeps the same layout in memory of its own.
void control_open(void) {
	if (F_.settings) return;
	const char *path = getenv("AITK_FAKE");
	void *p = MAP_FAILED;
	if (path && *path) {
		int fd = open(path, O_RDWR);
		if (fd >= 0) {
			p = mmap(0, CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			close(fd);
		}
		if (p == MAP_FAILED) fprintf(stderr, "fakecuda: control file %s cannot be used\n", path);
	}
	int own = p == MAP_FAILED;
	if (own) p = calloc(1, CONTROL_BYTES);
	F_.settings = p;
	F_.counters = (int64_t *)((char *)p + COUNTERS_OFFSET);
	F_.strings = (char *)p + STRINGS_OFFSET;
	F_.reports = (char *)p + REPORTS_OFFSET;
	F_.reportBytes = CONTROL_BYTES - REPORTS_OFFSET;
	if (own) {
		static const int64_t defaults[] = SETTING_DEFAULTS;
		memcpy(F_.settings, defaults, sizeof defaults);
	}
}

// A change of resetCount asks for counters of zero: what is in use stays in use, and high-water marks begin there.
void control_poll(void) {
	static int64_t seen;
	static int64_t seed = -1;
	if (SET(seed) != seed) {
		seed = SET(seed);
		F_.rng = (uint64_t)seed * 0x9e3779b97f4a7c15ull + 1;
	}
	if (SET(resetCount) == seen) return;
	seen = SET(resetCount);
	int64_t inUse = COUNT(deviceBytes), pinned = COUNT(pinnedBytes);
	memset(F_.counters, 0, STRINGS_OFFSET - COUNTERS_OFFSET);
	COUNT(deviceBytes) = COUNT(deviceHighWater) = inUse;
	COUNT(pinnedBytes) = COUNT(pinnedHighWater) = pinned;
	F_.reports[0] = 0;
}

const char *control_string(int which) { return F_.strings + which * STRING_BYTES; }

// Reports are lines. When the file is full the rest is only counted.
void report(const char *format, ...) {
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; // workers report as well
	char line[1024];
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(line, sizeof line - 1, format, ap);
	va_end(ap);
	if (n > (int)sizeof line - 2) n = sizeof line - 2;
	line[n++] = '\n';
	pthread_mutex_lock(&m);
	COUNT(reports)++;
	size_t used = strnlen(F_.reports, F_.reportBytes);
	if (used + (size_t)n + 1 < F_.reportBytes) {
		memcpy(F_.reports + used, line, (size_t)n);
		F_.reports[used + (size_t)n] = 0;
	}
	if (SET(verbose)) fwrite(line, 1, (size_t)n, stderr);
	pthread_mutex_unlock(&m);
}

// intern keeps one copy of a text for ever: operations are remembered by name long after they ran.
const char *intern(const char *s) {
	static char **table;
	static size_t cap, n;
	if (!s) return 0;
	if (2 * n >= cap) {
		size_t old = cap;
		char **t = table;
		cap = cap ? 2 * cap : 1024;
		table = calloc(cap, sizeof *table);
		n = 0;
		for (size_t i = 0; i < old; i++)
			if (t[i]) {
				uint64_t h = 1469598103934665603ull;
				for (const char *c = t[i]; *c; c++) h = (h ^ (uint8_t)*c) * 1099511628211ull;
				while (table[h % cap]) h++;
				table[h % cap] = t[i], n++;
			}
		free(t);
	}
	uint64_t h = 1469598103934665603ull;
	for (const char *c = s; *c; c++) h = (h ^ (uint8_t)*c) * 1099511628211ull;
	for (; table[h % cap]; h++)
		if (!strcmp(table[h % cap], s)) return table[h % cap];
	n++;
	return table[h % cap] = strdup(s);
}

uint64_t rnd(void) {
	uint64_t z = F_.rng += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}
