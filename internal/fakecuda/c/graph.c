// graph.c: stream capture, and graphs that replay what was captured.
//
// A captured operation becomes a template. Each stream that took part is a branch: branch 0 replays on the stream that launches the graph, the others on
// streams of the graph's own. The host must not wait for captured work, and every branch must have been joined when the capture ends.
#include "api.h"
#include <stdlib.h>

static graph *graph_new(stream *origin) {
	graph *g = calloc(1, sizeof *g);
	g->magic = MAGIC_GRAPH, g->origin = origin, g->branches = 1, g->refs = 1;
	g->joined[0] = origin;
	for (int i = 0; i < STREAMS; i++) g->lastNode[i] = -1, g->merged[i] = -1;
	return g;
}

void graph_free(graph *g) {
	if (--g->refs) return;
	for (int i = 0; i < g->n; i++) free(g->nodes[i]->param), free(g->nodes[i]->ranges), free(g->nodes[i]);
	free(g->nodes), free(g->branch);
	g->magic = 0;
}

// capture_add takes ownership of the operation. A template keeps, in its clock, the last node of each branch that it comes after, plus one.
CUresult capture_add(op *o) {
	stream *s = o->s;
	graph *g = s->capturing;
	if (g->dead) {
		free(o->param), free(o->ranges), free(o);
		return ERR_CAPTURE_INVALIDATED;
	}
	if (g->n == g->cap) {
		g->cap = g->cap ? 2 * g->cap : 64;
		g->nodes = realloc(g->nodes, (size_t)g->cap * sizeof *g->nodes);
		g->branch = realloc(g->branch, (size_t)g->cap * sizeof *g->branch);
	}
	for (int i = g->n - 1; i >= 0; i--)
		if (g->branch[i] == s->branch) {
			memcpy(o->vc, g->nodes[i]->vc, sizeof o->vc);
			break;
		}
	if (o->kind == OP_WAIT)
		for (int i = 0; i < STREAMS; i++)
			if (g->nodes[o->waitNode]->vc[i] > o->vc[i]) o->vc[i] = g->nodes[o->waitNode]->vc[i];
	if (o->kind != OP_WAIT && o->kind != OP_RECORD) {
		g->lastNode[s->branch] = g->n;
		o->vc[s->branch] = (uint32_t)g->n + 1;
	}
	g->branch[g->n] = s->branch;
	g->nodes[g->n++] = o;
	return OK;
}

// capture_wait is cuStreamWaitEvent where the stream or the event belongs to a capture.
CUresult capture_wait(stream *s, event *e) {
	if (s->capturing && !e->captured) return s->capturing->dead = 1, ERR_CAPTURE_ISOLATION;
	if (e->captured->magic != MAGIC_GRAPH || !e->captured->origin) return ERR_INVALID_VALUE; // that capture is over
	if (s->capturing && s->capturing != e->captured) return s->capturing->dead = 1, ERR_CAPTURE_ISOLATION;
	if (!s->capturing) {
		if (s->index == 1) return e->captured->dead = 1, ERR_CAPTURE_IMPLICIT;
		graph *g = e->captured;
		if (g->branches == STREAMS) return ERR_OUT_OF_MEMORY;
		s->capturing = g, s->branch = g->branches;
		g->joined[g->branches++] = s;
	}
	op *o = op_new(OP_WAIT, s);
	o->waitNode = e->node;
	return capture_add(o);
}

API CUresult cuStreamBeginCapture_v2(void *handle, int mode) {
	ENTER();
	STREAM(s, handle);
	NEED(mode >= 0 && mode <= 2);
	if (s->index == 1) RETURN(ERR_CAPTURE_UNSUPPORTED);
	if (s->capturing) RETURN(ERR_INVALID_VALUE);
	s->capturing = graph_new(s), s->branch = 0;
	if (mode == 2) s->flags |= 1u << 31; // relaxed: allocations are the caller's business
	RETURN(OK);
}
ALIAS(cuStreamBeginCapture, cuStreamBeginCapture_v2);

API CUresult cuStreamEndCapture(void *handle, graph **out) {
	ENTER();
	STREAM(s, handle);
	NEED(out);
	graph *g = s->capturing;
	*out = 0;
	if (!g) RETURN(ERR_INVALID_VALUE);
	if (g->origin != s) {
		g->dead = 1;
		RETURN(ERR_CAPTURE_UNMATCHED);
	}
	CUresult e = g->dead ? ERR_CAPTURE_INVALIDATED : OK;
	const uint32_t *known = 0;
	for (int i = g->n - 1; i >= 0 && !known; i--)
		if (g->branch[i] == 0) known = g->nodes[i]->vc;
	for (int b = 1; b < g->branches && !e; b++)
		if (g->lastNode[b] >= 0 && (!known || known[b] < (uint32_t)g->lastNode[b] + 1)) e = ERR_CAPTURE_UNJOINED;
	for (int b = 0; b < g->branches; b++) g->joined[b]->capturing = 0, g->joined[b]->flags &= ~(1u << 31);
	g->origin = 0;
	if (e) graph_free(g);
	else *out = g;
	RETURN(e);
}

API CUresult cuStreamIsCapturing(void *handle, int *status) {
	ENTER();
	STREAM(s, handle);
	NEED(status);
	*status = !s->capturing ? 0 : s->capturing->dead ? 2 : 1;
	RETURN(OK);
}

API CUresult cuStreamGetCaptureInfo(void *handle, int *status, uint64_t *id) {
	ENTER();
	STREAM(s, handle);
	NEED(status);
	*status = !s->capturing ? 0 : s->capturing->dead ? 2 : 1;
	if (id) *id = (uint64_t)(uintptr_t)s->capturing;
	RETURN(OK);
}

API CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
	ENTER();
	NEED(mode);
	*mode = 0;
	RETURN(OK);
}

static CUresult instantiate(graphexec **out, graph *g) {
	ENTER();
	NEED(out);
	if (!g || g->magic != MAGIC_GRAPH || g->origin) RETURN(ERR_INVALID_HANDLE);
	graphexec *x = calloc(1, sizeof *x);
	x->magic = MAGIC_EXEC, x->g = g;
	for (int b = 1; b < g->branches; b++) {
		x->hidden[b] = stream_new(1, 0, 1);
		if (!x->hidden[b]) {
			for (int i = 1; i < b; i++) stream_delete(x->hidden[i]);
			free(x);
			RETURN(ERR_OUT_OF_MEMORY);
		}
	}
	g->refs++;
	COUNT(graphs)++;
	*out = x;
	RETURN(OK);
}
API CUresult cuGraphInstantiateWithFlags(graphexec **x, graph *g, uint64_t flags) { return flags & ~9ull ? ERR_INVALID_VALUE : instantiate(x, g); }
API CUresult cuGraphInstantiate(graphexec **x, graph *g, void *node, char *log, size_t n) { // the old form; the new one passes flags for node
	(void)node, (void)log, (void)n;
	return instantiate(x, g);
}
API CUresult cuGraphInstantiate_v2(graphexec **x, graph *g, void **node, char *log, size_t n) {
	if (node) *node = 0;
	if (log && n) *log = 0;
	return instantiate(x, g);
}

static op *copy_of(const op *t, stream *s) {
	op *o = malloc(sizeof *o);
	*o = *t;
	o->s = s, o->next = o->simNext = 0;
	memset(o->vc, 0, sizeof o->vc);
	if (t->param) {
		o->param = malloc(t->f->e->param_bytes + 8);
		memcpy(o->param, t->param, t->f->e->param_bytes + 8);
	}
	if (t->nranges > 0) {
		o->ranges = malloc((size_t)t->nranges * sizeof *o->ranges);
		memcpy(o->ranges, t->ranges, (size_t)t->nranges * sizeof *o->ranges);
	}
	return o;
}

API CUresult cuGraphLaunch(graphexec *x, void *handle) {
	ENTER();
	if (!x || x->magic != MAGIC_EXEC) RETURN(ERR_INVALID_HANDLE);
	STREAM(s, handle);
	if (s->capturing) RETURN(ERR_NOT_SUPPORTED);
	graph *g = x->g;
	struct { uint32_t seq, vc[STREAMS]; } *marks = calloc((size_t)g->n + 1, sizeof *marks);
	uint32_t start = record_on(s);
	for (int b = 1; b < g->branches; b++) wait_on(x->hidden[b], start, s->vc);
	for (int i = 0; i < g->n; i++) {
		const op *t = g->nodes[i];
		stream *on = g->branch[i] ? x->hidden[g->branch[i]] : s;
		if (t->kind == OP_RECORD) {
			marks[i].seq = record_on(on);
			memcpy(marks[i].vc, on->vc, sizeof on->vc);
		} else if (t->kind == OP_WAIT) {
			wait_on(on, marks[t->waitNode].seq, marks[t->waitNode].vc);
		} else {
			op_enqueue(copy_of(t, on));
		}
	}
	for (int b = 1; b < g->branches; b++) {
		uint32_t end = record_on(x->hidden[b]);
		wait_on(s, end, x->hidden[b]->vc);
	}
	free(marks);
	COUNT(graphLaunches)++;
	if (SET(seed) == 0) run_all();
	RETURN(OK);
}

API CUresult cuGraphUpload(graphexec *x, void *handle) {
	ENTER();
	if (!x || x->magic != MAGIC_EXEC) RETURN(ERR_INVALID_HANDLE);
	STREAM(s, handle);
	(void)s;
	RETURN(OK);
}

API CUresult cuGraphDestroy(graph *g) {
	ENTER();
	if (!g || g->magic != MAGIC_GRAPH) RETURN(ERR_INVALID_HANDLE);
	graph_free(g);
	RETURN(OK);
}

API CUresult cuGraphExecDestroy(graphexec *x) {
	ENTER();
	if (!x || x->magic != MAGIC_EXEC) RETURN(ERR_INVALID_HANDLE);
	for (int b = 1; b < x->g->branches; b++) stream_delete(x->hidden[b]);
	graph_free(x->g);
	x->magic = 0;
	RETURN(OK);
}

API CUresult cuGraphGetNodes(graph *g, void **nodes, size_t *n) {
	ENTER();
	if (!g || g->magic != MAGIC_GRAPH) RETURN(ERR_INVALID_HANDLE);
	NEED(n);
	size_t k = 0;
	for (int i = 0; i < g->n; i++) {
		if (g->nodes[i]->kind == OP_RECORD || g->nodes[i]->kind == OP_WAIT) continue;
		if (nodes && k < *n) nodes[k] = g->nodes[i];
		k++;
	}
	if (!nodes || *n > k) *n = k;
	RETURN(OK);
}
