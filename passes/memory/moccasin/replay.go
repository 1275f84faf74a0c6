package moccasin

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Replay runs a schedule of node ids and returns its peak in bytes and the sum of its durations by the benchmark's own rules: a value lives from its
// computation to the last consumer before its next computation, both ends included; one without a later consumer at its own event only. It is what
// judges schedules of this package: it reads ids and sizes and shares nothing with the solver or the solver's simulator. A schedule that
// computes a node before one that it reads, leaves out a node or names an unknown one is refused.
func (g *Graph) Replay(schedule []json.RawMessage) (peakBytes, duration int64, err error) {
	node := make(map[string]int32, len(g.IDs))
	for i, id := range g.IDs {
		node[string(id)] = int32(i)
	}
	n := len(schedule)
	latest := make([]int, len(g.IDs)) // event of the latest computation, by node
	for v := range latest {
		latest[v] = -1
	}
	last := make([]int, n) // last event that needs what an event computed
	events := make([]int32, n)
	for k, id := range schedule {
		v, ok := node[string(id)]
		if !ok {
			return 0, 0, fmt.Errorf("schedule[%d]: %s is not a node", k, id)
		}
		for _, u := range g.Problem.Ops[v].In {
			if latest[u] < 0 {
				return 0, 0, fmt.Errorf("schedule[%d] computes node %s before node %s, which it reads", k, id, g.IDs[u])
			}
			last[latest[u]] = k
		}
		latest[v], last[k], events[k] = k, k, v
		duration += g.Problem.Ops[v].Picos
	}
	if v := slices.Index(latest, -1); v >= 0 {
		return 0, 0, fmt.Errorf("the schedule never computes node %s", g.IDs[v])
	}
	change := make([]int64, n+1)
	for k, v := range events {
		change[k] += g.Problem.Values[v].Bytes
		change[last[k]+1] -= g.Problem.Values[v].Bytes
	}
	var live int64
	for _, c := range change {
		live += c
		peakBytes = max(peakBytes, live)
	}
	return peakBytes, duration, nil
}
