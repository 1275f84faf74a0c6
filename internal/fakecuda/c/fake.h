// fake.h: the types that the files of the fake driver share.
//
// One lock guards everything; an operation runs to its end while the lock is held. What is asynchronous about the device is modelled, not
// real: an enqueued operation waits in its stream until the scheduler (queue.c) picks it, at once where the seed is 0, otherwise at some later
// moment that the seed decides. So a run depends on its seed and on nothing else, and the race check does not even depend on that.
#ifndef FAKE_H
#define FAKE_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include "fake_names.h" // generated: the settings and counters of fakecuda.go
#include "ptxrt.h"

#define API __attribute__((visibility("default")))

// ---- what the driver's interface needs; the numbers are those of the public reference
typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
enum {
	OK = 0, ERR_INVALID_VALUE = 1, ERR_OUT_OF_MEMORY = 2, ERR_NOT_INITIALIZED = 3, ERR_NO_DEVICE = 100, ERR_INVALID_DEVICE = 101,
	ERR_INVALID_IMAGE = 200, ERR_INVALID_CONTEXT = 201, ERR_NO_BINARY = 209, ERR_INVALID_PTX = 218, ERR_UNSUPPORTED_PTX_VERSION = 222,
	ERR_FILE_NOT_FOUND = 301, ERR_INVALID_HANDLE = 400, ERR_NOT_FOUND = 500, ERR_NOT_READY = 600, ERR_ILLEGAL_ADDRESS = 700,
	ERR_LAUNCH_OUT_OF_RESOURCES = 701, ERR_LAUNCH_TIMEOUT = 702, ERR_HOST_REGISTERED = 712, ERR_HOST_NOT_REGISTERED = 713,
	ERR_MISALIGNED_ADDRESS = 716, ERR_LAUNCH_FAILED = 719, ERR_NOT_SUPPORTED = 801, ERR_CAPTURE_UNSUPPORTED = 900, ERR_CAPTURE_INVALIDATED = 901,
	ERR_CAPTURE_UNMATCHED = 903, ERR_CAPTURE_UNJOINED = 904, ERR_CAPTURE_ISOLATION = 905, ERR_CAPTURE_IMPLICIT = 906,
};

// ---- memory
enum { MEM_DEVICE, MEM_PINNED, MEM_REGISTERED, MEM_CONST };

// vcell remembers, for 16 bytes, the operations that touched them last: the writer and up to three readers that nothing orders among each
// other. 0: none.
typedef struct { uint32_t w, r[3]; } vcell;
// bcell remembers, for 4 bytes, who touched them within one launch: see within.c, which reads and writes each pair as one.
typedef struct { uint32_t wrun, w, rrun, r; } __attribute__((aligned(16))) bcell;

typedef struct alloc {
	uint64_t base, bytes;
	int kind;
	uint8_t *init; // one byte a byte: 1 written. Host memory: 1 written by the device; the rest is known by its poison
	vcell *vc;
	bcell *bc;
	void *map;
	size_t mapBytes;
} alloc;

typedef struct { uint64_t ptr, bytes; uint32_t access, pad; const char *name; } fakeRange;
typedef struct { uint64_t ptr, bytes; const char *name; int flags; } named;

// ---- operations
enum { OP_KERNEL, OP_COPY, OP_SET, OP_POISON, OP_RECORD, OP_WAIT, OP_HOSTFN, OP_HOST };
enum { DIR_H2D, DIR_D2H, DIR_D2D, DIR_H2H };
#define STREAMS 64 // actors of the vector clocks: 0 the host, 1 the default stream
#define HOST 0

typedef struct stream stream;
typedef struct graph graph;
typedef struct module module;
typedef struct function { uint32_t magic; module *mod; const ptx_entry *e; int maxDynamic; } function;

// rec is what stays known of an operation when it is over; its index is the operation's number.
typedef struct { const char *name, *position; int64_t simEnd; uint32_t clock; uint8_t stream, done, resolved; } rec;

typedef struct op {
	int kind;
	uint32_t seq;
	stream *s;
	struct op *next;    // in its stream
	struct op *simNext; // in the order of enqueueing
	uint32_t vc[STREAMS];
	// annotations
	const char *position;
	int64_t picos;
	int nranges; // -1: unchecked
	fakeRange *ranges;
	// copies, memsets, poison
	uint64_t dst, src, bytes, sum;
	int dir, unit, summed;
	uint32_t value;
	// kernels
	function *f;
	uint32_t grid[3], block[3], dynamic;
	uint8_t *param;
	uint64_t flops, moved;
	// waits and records
	uint32_t waitSeq;
	int waitNode; // in graphs
	void (*fn)(void *);
	void *arg;
	// the simulated clock
	int64_t simHost; // not before
} op;

struct stream {
	uint32_t magic;
	int index, blocking, priority, hidden;
	unsigned flags;
	op *head, *tail;
	uint32_t vc[STREAMS];
	uint32_t clock, last; // last: number of the operation enqueued last
	int64_t simEnd;
	graph *capturing;
	int branch;
	// annotation for the next operation
	const char *position;
	int64_t picos;
	int nranges;
	fakeRange *ranges;
};

typedef struct event {
	uint32_t magic;
	unsigned flags;
	uint32_t seq; // 0: never recorded
	uint32_t vc[STREAMS];
	graph *captured;
	int node;
} event;

struct graph {
	uint32_t magic;
	op **nodes; // templates; op.s is a branch number in dir for hidden streams
	int *branch;
	int n, cap, branches, dead;
	stream *origin;
	stream *joined[STREAMS];
	int lastNode[STREAMS], merged[STREAMS];
	int refs;
};

typedef struct { uint32_t magic; graph *g; stream *hidden[STREAMS]; } graphexec;

struct module { uint32_t magic; void *dl; const ptx_module *info; function *fs; alloc **vars; };

typedef struct context { uint32_t magic; unsigned flags; int primary, refs; } context;

enum { MAGIC_STREAM = 0x5374726d, MAGIC_EVENT = 0x45766e74, MAGIC_GRAPH = 0x47726166, MAGIC_EXEC = 0x45786563, MAGIC_MODULE = 0x4d6f6475, MAGIC_FUNCTION = 0x46756e63,
	MAGIC_CONTEXT = 0x43747874 };

// ---- the one state
typedef struct fake {
	pthread_mutex_t lock;
	int initialised;
	CUresult sticky; // what a fault left behind; every later call answers it
	context *primary;
	int64_t *settings, *counters;
	char *strings, *reports;
	size_t reportBytes;
	alloc **allocs; // sorted by base
	int nallocs, callocs;
	named *names;
	int nnames;
	rec *recs;
	uint32_t nrecs, crecs;
	stream *streams[STREAMS];
	uint32_t clocks[STREAMS]; // survive their streams
	uint32_t hostVC[STREAMS];
	op *simHead, *simTail;
	int64_t simHost, simEngine[4];
	int pending;
	uint64_t rng, deviceBytes;
	uint32_t runs; // block runs handed out, see within.c
	int64_t launches, calls; // since the start; calls that need a context
} fake;
extern fake F_;

#define SET(name) F_.settings[SETTING_##name]
#define COUNT(name) F_.counters[COUNTER_##name]

// control.c
void control_open(void);
void control_poll(void);
const char *control_string(int which);
void report(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *intern(const char *);
uint64_t rnd(void);

// api.c
CUresult enter(void);   // takes the lock; a call without context, or after a fault, fails
CUresult enter0(void);  // the same for calls that need no context
CUresult leave(CUresult);
extern __thread context *current;

// memory.c
alloc *mem_find(uint64_t ptr);
alloc *mem_new(uint64_t bytes, int kind);
alloc *mem_register(void *p, uint64_t bytes);
void mem_delete(alloc *);
void mem_poison(alloc *, uint64_t ptr, uint64_t bytes);
const named *mem_name(uint64_t ptr);
const char *mem_text(uint64_t ptr, char *buf, size_t n);
uint64_t host_sum(uint64_t ptr, uint64_t bytes);
CUresult mem_info(size_t *free_, size_t *total);

// queue.c
op *op_new(int kind, stream *s);
CUresult op_enqueue(op *);
uint32_t record_on(stream *);
void wait_on(stream *, uint32_t seq, const uint32_t *vc);
void run_until(uint32_t seq);
void run_all(void);
int seq_done(uint32_t seq);
void host_synced(uint32_t seq, const uint32_t *vc);
stream *stream_new(unsigned flags, int priority, int hidden);
void stream_delete(stream *);
stream *stream_of(void *handle);
void sim_resolve(void);
int64_t sim_time(uint32_t seq);
const char *op_text(uint32_t seq, char *buf, size_t n);

// race.c
typedef struct { uint32_t okSeq; int worker; } racememo;
int ordered(const op *, uint32_t seq, racememo *);
void race_range(op *, alloc *, uint64_t ptr, uint64_t bytes, int write, racememo *);
int range_allowed(const op *, uint64_t ptr, uint64_t bytes, int write, int *hint);
const char *range_text(const op *o, uint64_t ptr, uint64_t bytes, int write, char *buf, size_t n);
void uninitialised(op *, uint64_t ptr, int shared, const char *at);

// copy.c
void op_run_copy(op *);
void op_run_set(op *);

// block.c
void op_run_kernel(op *);
// graph.c
CUresult capture_add(op *);
void graph_free(graph *);

extern const ptx_host warp_host; // warp.c, warpops.c
#endif
