// queue.c: streams, the scheduler, vector clocks of operations, and the simulated clock.
//
// Order. Each operation gets a number, its stream's next clock and a vector: the clocks of all streams that are certain to be past. Stream order,
// events, synchronisation by the host and the default stream's rules join vectors; nothing else does. Two accesses are ordered if the
// later operation's vector covers the earlier one's clock, whatever the scheduler did.
//
// Time. Start and end on the simulated clock are computed in the order of enqueueing once an operation ran (a kernel's length may depend on what it
// did): it starts when its stream is free, what it waits for has ended, the host has come so far, and its copy engine is free.
#include "fake.h"
#include <stdio.h>
#include <stdlib.h>

static void join(uint32_t *a, const uint32_t *b) {
	for (int i = 0; i < STREAMS; i++)
		if (b[i] > a[i]) a[i] = b[i];
}

stream *stream_new(unsigned flags, int priority, int hidden) {
	int i = 1;
	while (i < STREAMS && F_.streams[i]) i++;
	if (i == STREAMS) return 0;
	stream *s = calloc(1, sizeof *s);
	s->magic = MAGIC_STREAM, s->index = i, s->flags = flags, s->priority = priority, s->hidden = hidden;
	s->blocking = !(flags & 1) && !hidden;
	s->nranges = -1, s->picos = -1;
	F_.streams[i] = s;
	return s;
}

void stream_delete(stream *s) {
	run_all(); // and with it the simulated clock lets go of the operations
	F_.streams[s->index] = 0;
	s->magic = 0;
	free(s->ranges);
	free(s); // its operations are over; the list of the simulated clock no longer needs it
}

// stream_of resolves a handle: 0, 1 and 2 are the default stream.
stream *stream_of(void *handle) {
	if ((uintptr_t)handle <= 2) {
		if (!F_.streams[1]) {
			stream *s = stream_new(0, 0, 0);
			(void)s; // index 1 is free until here: the first stream made is this one, see api.c
		}
		return F_.streams[1];
	}
	stream *s = handle;
	return s->magic == MAGIC_STREAM ? s : 0;
}

op *op_new(int kind, stream *s) {
	op *o = calloc(1, sizeof *o);
	o->kind = kind, o->s = s, o->picos = -1, o->nranges = -1;
	if (kind == OP_KERNEL || kind == OP_COPY || kind == OP_SET) { // takes what fakeExpect left
		o->position = s->position, o->picos = s->picos, o->nranges = s->nranges, o->ranges = s->ranges;
		s->position = 0, s->picos = -1, s->nranges = -1, s->ranges = 0;
	}
	return o;
}

static const char *kind_name(const op *o) {
	static const char *copies[] = {"copy host to device", "copy device to host", "copy device to device", "copy host to host"};
	switch (o->kind) {
	case OP_KERNEL: return o->f->e->name;
	case OP_COPY: return copies[o->dir];
	case OP_SET: return "memset";
	case OP_POISON: return "end of a buffer's life";
	case OP_HOST: return "host access";
	case OP_HOSTFN: return "host function";
	}
	return "event";
}

static void number(op *o) {
	if (F_.nrecs + 1 >= F_.crecs) {
		F_.crecs = F_.crecs ? 2 * F_.crecs : 4096;
		F_.recs = realloc(F_.recs, F_.crecs * sizeof *F_.recs);
	}
	o->seq = ++F_.nrecs;
	stream *s = o->s;
	int i = s ? s->index : HOST;
	rec *r = &F_.recs[o->seq];
	*r = (rec){.name = intern(kind_name(o)), .position = o->position, .stream = (uint8_t)i};
	if (!s) {
		r->clock = F_.hostVC[HOST];
		memcpy(o->vc, F_.hostVC, sizeof o->vc);
		return;
	}
	join(s->vc, F_.hostVC);
	r->clock = s->clock = ++F_.clocks[i];
	s->vc[i] = s->clock;
	s->last = o->seq;
	memcpy(o->vc, s->vc, sizeof o->vc);
	F_.hostVC[HOST]++; // what the host does from here on, the operation has not seen
}

static void push(op *o) {
	stream *s = o->s;
	number(o);
	if (s->tail) s->tail->next = o;
	else s->head = o;
	s->tail = o;
	F_.pending++;
	o->simHost = F_.simHost;
	if (F_.simTail) F_.simTail->simNext = o;
	else F_.simHead = o;
	F_.simTail = o;
}

int seq_done(uint32_t seq) { return seq == 0 || F_.recs[seq].done; }

// wait_on queues on a stream: go no further until operation seq is over.
void wait_on(stream *s, uint32_t seq, const uint32_t *vc) {
	op *o = op_new(OP_WAIT, s);
	o->waitSeq = seq;
	join(s->vc, vc);
	push(o);
}

uint32_t record_on(stream *s) {
	op *o = op_new(OP_RECORD, s);
	push(o);
	return o->seq;
}

// The default stream comes after everything in blocking streams, and before what they get later.
static void legacy(stream *s) {
	if (s->hidden || !F_.streams[1]) return;
	if (s->index == 1) {
		for (int i = 2; i < STREAMS; i++) {
			stream *t = F_.streams[i];
			if (t && t->blocking && t->last && s->vc[i] < t->clock) wait_on(s, t->last, t->vc);
		}
	} else if (s->blocking && F_.streams[1]->last && s->vc[1] < F_.streams[1]->clock) {
		wait_on(s, F_.streams[1]->last, F_.streams[1]->vc);
	}
}

static int ready(const stream *s) { return s && s->head && (s->head->kind != OP_WAIT || seq_done(s->head->waitSeq)); }

static void run_op(op *o) {
	if (o->kind == OP_KERNEL && ++F_.launches == SET(failAtLaunch) && !F_.sticky) {
		F_.sticky = (CUresult)SET(failCode);
		report("device failure at launch %lld (%s), as the test asked", (long long)F_.launches, o->f->e->name);
	}
	if (!F_.sticky) switch (o->kind) {
		case OP_KERNEL: op_run_kernel(o); break;
		case OP_COPY: op_run_copy(o); break;
		case OP_SET: case OP_POISON: op_run_set(o); break;
		case OP_HOSTFN: o->fn(o->arg); break;
		}
	stream *s = o->s;
	s->head = o->next;
	if (!s->head) s->tail = 0;
	F_.pending--;
	F_.recs[o->seq].done = 1;
	sim_resolve();
}

// run_one lets one ready operation run: the oldest where the seed is 0, else any. 0 when nothing is ready.
static int run_one(void) {
	stream *pick = 0;
	int n = 0;
	for (int i = 1; i < STREAMS; i++) {
		stream *s = F_.streams[i];
		if (!ready(s)) continue;
		n++;
		if (SET(seed) == 0 ? !pick || s->head->seq < pick->head->seq : rnd() % (uint64_t)n == 0) pick = s;
	}
	if (!pick) return 0;
	run_op(pick->head);
	return 1;
}

// A wait is queued after what it waits for, so the oldest pending operation is always ready and these loops end.
void run_until(uint32_t seq) {
	while (!seq_done(seq) && run_one()) {}
}

void run_all(void) {
	while (F_.pending && run_one()) {}
}

CUresult op_enqueue(op *o) {
	if (o->s->capturing) return capture_add(o);
	legacy(o->s);
	if (o->kind == OP_COPY && o->dir == DIR_H2D && mem_find(o->src) && SET(checkLevel) > 0) o->summed = 1, o->sum = host_sum(o->src, o->bytes);
	push(o);
	if (SET(seed) == 0 || F_.pending > 20000) {
		run_all();
	} else {
		// sometimes the device is idle and quick, sometimes far behind; one stream may be favoured for a while
		for (int n = (int)(rnd() % 8) - 4; n > 0 && run_one(); n--) {}
	}
	return OK;
}

// host_synced: the host knows that operation seq is over, and all that its vector covers.
void host_synced(uint32_t seq, const uint32_t *vc) {
	join(F_.hostVC, vc);
	if (!seq) return;
	op *o = op_new(OP_HOST, 0); // in the order of enqueueing, so that the clock of the host moves at the right place
	o->waitSeq = seq;
	if (F_.simTail) F_.simTail->simNext = o;
	else F_.simHead = o;
	F_.simTail = o;
	sim_resolve();
}

static int64_t at_rate(uint64_t amount, int64_t per_second) {
	return per_second > 0 ? (int64_t)((double)amount * 1e12 / (double)per_second + 0.5) : 0;
}

static int64_t duration(const op *o) {
	if (o->kind != OP_KERNEL && o->kind != OP_COPY && o->kind != OP_SET) return 0;
	if (o->picos >= 0) return o->picos;
	int64_t memory = SET(deviceBytesPerSecond);
	if (o->kind == OP_KERNEL) {
		int64_t f = at_rate(o->flops, SET(flopsPerSecond)), b = at_rate(o->moved, memory);
		return SET(kernelLatencyPicos) + (f > b ? f : b);
	}
	if (o->kind == OP_COPY && o->dir == DIR_H2D) return SET(copyLatencyPicos) + at_rate(o->bytes, SET(h2dBytesPerSecond));
	if (o->kind == OP_COPY && o->dir == DIR_D2H) return SET(copyLatencyPicos) + at_rate(o->bytes, SET(d2hBytesPerSecond));
	return SET(kernelLatencyPicos) + at_rate((o->kind == OP_COPY ? 2 : 1) * o->bytes, memory);
}

static void latest(int64_t *t, int64_t u) {
	if (u > *t) *t = u;
}

void sim_resolve(void) {
	for (op *o = F_.simHead; o; o = F_.simHead) {
		if (!o->s) { // the host waits
			latest(&F_.simHost, F_.recs[o->waitSeq].simEnd);
		} else {
			rec *r = &F_.recs[o->seq];
			if (!r->done) return;
			int64_t start = o->s->simEnd;
			latest(&start, o->simHost);
			latest(&start, F_.simHost);
			if (o->kind == OP_WAIT && o->waitSeq) latest(&start, F_.recs[o->waitSeq].simEnd);
			int64_t d = duration(o);
			int engine = o->kind == OP_COPY && o->dir <= DIR_D2H ? o->dir : -1;
			if (engine >= 0) latest(&start, F_.simEngine[engine]), F_.simEngine[engine] = start + d, COUNT(simCopyPicos) += d;
			if (o->kind == OP_KERNEL) COUNT(simKernelPicos) += d;
			r->simEnd = o->s->simEnd = start + d;
			r->resolved = 1;
			latest(&COUNT(simPicos), r->simEnd);
		}
		F_.simHead = o->simNext;
		if (!F_.simHead) F_.simTail = 0;
		free(o->param);
		free(o->ranges);
		free(o);
	}
}

// sim_time is when an operation ends; everything enqueued before it has to run for that.
int64_t sim_time(uint32_t seq) {
	while (!F_.recs[seq].resolved && run_one()) {}
	return F_.recs[seq].simEnd;
}

const char *op_text(uint32_t seq, char *buf, size_t n) {
	const rec *r = &F_.recs[seq];
	const char *where = r->position ? r->position : "";
	if (r->stream == HOST) snprintf(buf, n, "%s%s%s (#%u)", r->name, *where ? " at " : "", where, seq);
	else snprintf(buf, n, "%s%s%s (#%u, stream %d, place %u)", r->name, *where ? " at " : "", where, seq, r->stream, r->clock);
	return buf;
}

// host_access is an access by the program itself, as fakeHostAccess tells.
void host_access(alloc *a, uint64_t ptr, uint64_t bytes, int write) {
	racememo memo = {0};
	op *o = op_new(OP_HOST, 0);
	number(o);
	F_.recs[o->seq].done = F_.recs[o->seq].resolved = 1;
	race_range(o, a, ptr, bytes, write, &memo);
	free(o);
}
