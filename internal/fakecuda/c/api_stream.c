// api_stream.c: streams and events.
#include "api.h"
#include <stdlib.h>

static CUresult create(stream **out, unsigned flags, int priority) {
	ENTER();
	NEED(out && flags <= 1);
	stream *s = stream_new(flags, priority < -5 ? -5 : priority > 0 ? 0 : priority, 0);
	if (!s) RETURN(ERR_OUT_OF_MEMORY);
	COUNT(streams)++;
	*out = s;
	RETURN(OK);
}
API CUresult cuStreamCreate(stream **s, unsigned flags) { return create(s, flags, 0); }
API CUresult cuStreamCreateWithPriority(stream **s, unsigned flags, int priority) { return create(s, flags, priority); }

API CUresult cuStreamDestroy_v2(void *handle) {
	ENTER();
	STREAM(s, handle);
	if (s->index == 1) RETURN(ERR_INVALID_HANDLE);
	if (s->capturing) RETURN(ERR_CAPTURE_UNSUPPORTED);
	stream_delete(s);
	RETURN(OK);
}
ALIAS(cuStreamDestroy, cuStreamDestroy_v2);

// A wait of the host in the middle of a capture spoils it.
static int spoiled(stream *s) {
	if (!s->capturing) return 0;
	s->capturing->dead = 1;
	return 1;
}

API CUresult cuStreamSynchronize(void *handle) {
	ENTER();
	STREAM(s, handle);
	if (spoiled(s)) RETURN(ERR_CAPTURE_UNSUPPORTED);
	if (SET(seed) == 0) run_all();
	run_until(s->last);
	COUNT(synchronizations)++;
	host_synced(s->last, s->vc);
	RETURN(OK);
}

API CUresult cuStreamQuery(void *handle) {
	ENTER();
	STREAM(s, handle);
	if (spoiled(s)) RETURN(ERR_CAPTURE_UNSUPPORTED);
	// whoever asks again and again must see progress
	if (SET(seed) == 0) run_all();
	else if (rnd() % 2) run_until(s->last);
	if (!seq_done(s->last)) RETURN(ERR_NOT_READY);
	host_synced(s->last, s->vc);
	RETURN(OK);
}

API CUresult cuStreamGetFlags(void *handle, unsigned *flags) {
	ENTER();
	STREAM(s, handle);
	NEED(flags);
	*flags = s->flags & 1;
	RETURN(OK);
}

API CUresult cuStreamGetPriority(void *handle, int *p) {
	ENTER();
	STREAM(s, handle);
	NEED(p);
	*p = s->priority;
	RETURN(OK);
}

API CUresult cuStreamGetCtx(void *handle, context **c) {
	ENTER();
	STREAM(s, handle);
	NEED(c);
	*c = current;
	RETURN(OK);
}

API CUresult cuLaunchHostFunc(void *handle, void (*fn)(void *), void *arg) {
	ENTER();
	STREAM(s, handle);
	NEED(fn);
	op *o = op_new(OP_HOSTFN, s);
	o->fn = fn, o->arg = arg;
	RETURN(op_enqueue(o));
}

// ---- events
#define EVENT(e) do { if (!(e) || (e)->magic != MAGIC_EVENT) return leave(ERR_INVALID_HANDLE); } while (0)

API CUresult cuEventCreate(event **out, unsigned flags) {
	ENTER();
	NEED(out && flags <= 7);
	event *e = calloc(1, sizeof *e);
	e->magic = MAGIC_EVENT, e->flags = flags;
	COUNT(events)++;
	*out = e;
	RETURN(OK);
}

API CUresult cuEventDestroy_v2(event *e) {
	ENTER();
	EVENT(e);
	e->magic = 0; // never freed: a stale handle must be recognised
	RETURN(OK);
}
ALIAS(cuEventDestroy, cuEventDestroy_v2);

API CUresult cuEventRecord(event *e, void *handle) {
	ENTER();
	EVENT(e);
	STREAM(s, handle);
	COUNT(records)++;
	if (s->capturing) {
		graph *g = s->capturing;
		CUresult r = capture_add(op_new(OP_RECORD, s));
		if (r) RETURN(r);
		e->captured = g, e->node = g->n - 1, e->seq = 0;
		RETURN(OK);
	}
	if (s->index == 1) // after all blocking streams
		for (int i = 2; i < STREAMS; i++)
			if (F_.streams[i] && F_.streams[i]->blocking && F_.streams[i]->last) wait_on(s, F_.streams[i]->last, F_.streams[i]->vc);
	e->seq = record_on(s);
	e->captured = 0;
	memcpy(e->vc, s->vc, sizeof e->vc);
	if (SET(seed) == 0) run_all();
	RETURN(OK);
}
API CUresult cuEventRecordWithFlags(event *e, void *s, unsigned flags) { return flags ? ERR_NOT_SUPPORTED : cuEventRecord(e, s); }

API CUresult cuEventQuery(event *e) {
	ENTER();
	EVENT(e);
	if (e->captured) RETURN(ERR_CAPTURE_UNSUPPORTED);
	if (SET(seed) == 0) run_all();
	else if (rnd() % 2) run_until(e->seq);
	if (!seq_done(e->seq)) RETURN(ERR_NOT_READY);
	if (e->seq) host_synced(e->seq, e->vc);
	RETURN(OK);
}

API CUresult cuEventSynchronize(event *e) {
	ENTER();
	EVENT(e);
	if (e->captured) RETURN(ERR_CAPTURE_UNSUPPORTED);
	COUNT(synchronizations)++;
	if (SET(seed) == 0) run_all();
	run_until(e->seq);
	if (e->seq) host_synced(e->seq, e->vc);
	RETURN(OK);
}

// Elapsed time is that of the simulated clock.
API CUresult cuEventElapsedTime(float *ms, event *a, event *b) {
	ENTER();
	EVENT(a);
	EVENT(b);
	NEED(ms);
	if ((a->flags | b->flags) & 2 || !a->seq || !b->seq) RETURN(ERR_INVALID_HANDLE); // without timing, or never recorded
	if (!seq_done(a->seq) || !seq_done(b->seq)) RETURN(ERR_NOT_READY);
	*ms = (float)((double)(sim_time(b->seq) - sim_time(a->seq)) * 1e-9);
	RETURN(OK);
}
ALIAS(cuEventElapsedTime_v2, cuEventElapsedTime);

API CUresult cuStreamWaitEvent(void *handle, event *e, unsigned flags) {
	ENTER();
	EVENT(e);
	STREAM(s, handle);
	NEED(flags <= 1);
	COUNT(waits)++;
	if (e->captured || s->capturing) {
		extern CUresult capture_wait(stream *, event *);
		RETURN(capture_wait(s, e));
	}
	if (!e->seq) RETURN(OK); // never recorded: nothing to wait for
	wait_on(s, e->seq, e->vc);
	RETURN(OK);
}

// ---- annotations
API int fakeExpect(void *handle, const char *position, int64_t picos, int n, const fakeRange *ranges) {
	ENTER();
	STREAM(s, handle);
	NEED(n <= 0 || ranges);
	free(s->ranges);
	s->position = intern(position), s->picos = picos, s->nranges = n, s->ranges = 0;
	if (n > 0) {
		s->ranges = malloc((size_t)n * sizeof *ranges);
		memcpy(s->ranges, ranges, (size_t)n * sizeof *ranges);
		for (int i = 0; i < n; i++) s->ranges[i].name = intern(ranges[i].name);
	}
	RETURN(OK);
}
