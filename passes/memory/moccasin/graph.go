// Package moccasin reads cost graphs in the JSON of the MOCCASIN benchmark (Bartan et al., ICML 2023, arXiv 2304.14463) as memory problems, and draws random
// layered graphs of the same kind (Gagrani et al., 2022, appendix A).
//
// The files are node-link graphs in one of two forms: nodes with name, out_cost and duration, links from "0" to "1", and the order to use in graph.order; or
// nodes with id, cost_ram and cost_cpu, links from source to target, and no order: then nodes run first in, first out, as they become ready. A
// value lives from its computation to the last consumer before its next computation, both ends included; one that no later event reads lives at its own event
// only. There are no persistent values, no scratch bytes and no writing over operands. That is what package memory makes of the problem that Read returns:
// at each event of its simulator operands and outputs are both alive.
package moccasin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"aitk/passes/memory"
)

// MaxFileBytes is the largest file that Read takes.
const MaxFileBytes = 256 << 20

// maxFindings bounds how many findings of one kind an error lists.
const maxFindings = 20

// Graph is a cost graph in an order of its nodes: op and value i of Problem are node i of that order. Durations are picoseconds of the problem, whatever their unit in the file.
type Graph struct {
	Name    string
	IDs     []json.RawMessage // by position in the order: the node's id as the file writes it, a number or a string
	Problem memory.Problem    // without a budget, recomputing allowed
}

// node is a node of either form.
type node struct {
	ID       json.RawMessage
	Name     json.RawMessage
	OutCost  *json.Number `json:"out_cost"`
	Duration *json.Number
	CostRAM  *json.Number `json:"cost_ram"`
	CostCPU  *json.Number `json:"cost_cpu"`
}

// link is an edge of either form.
type link struct {
	Source, Target json.RawMessage
	From           json.RawMessage `json:"0"`
	To             json.RawMessage `json:"1"`
}

// file is the whole of it.
type file struct {
	Graph struct {
		Name  string
		Order []json.RawMessage
	}
	Nodes []node
	Links []link
}

// reader turns a file into a graph.
type reader struct {
	name       string
	f          file
	ids        []json.RawMessage
	index      map[string]int32 // by id
	next, prev [][]int32        // by node: of the links, without duplicates
	errs       []error
}

// Read reads a graph; name is what errors call the file. All findings of one kind are listed at once.
func Read(name string, r io.Reader) (*Graph, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("%s: larger than %d bytes, the most that a cost graph may take", name, int64(MaxFileBytes))
	}
	x := reader{name: name, index: map[string]int32{}}
	if err := json.Unmarshal(data, &x.f); err != nil {
		return nil, fmt.Errorf("%s%s: not a node-link graph in JSON: %w", name, position(data, err), err)
	}
	if len(x.f.Nodes) == 0 {
		return nil, fmt.Errorf("%s: no nodes: want an object with \"nodes\" and \"links\"", name)
	}
	for _, step := range []func(){x.nodes, x.links} {
		if step(); len(x.errs) > 0 {
			return nil, errors.Join(x.errs...)
		}
	}
	order := x.order()
	if len(x.errs) > 0 {
		return nil, errors.Join(x.errs...)
	}
	g := x.graph(order)
	if len(x.errs) > 0 {
		return nil, errors.Join(x.errs...)
	}
	if err := memory.Validate(&g.Problem); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return g, nil
}

// position is ":LINE:COLUMN" of an error in JSON, from 1; empty where it has none.
func position(data []byte, err error) string {
	at := int64(-1)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = e.Offset
	} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at = e.Offset
	}
	if at < 0 || at > int64(len(data)) {
		return ""
	}
	before := data[:max(at-1, 0)] // what was read when the error showed ends with the byte at fault
	return fmt.Sprintf(":%d:%d", bytes.Count(before, []byte{'\n'})+1, len(before)-bytes.LastIndexByte(before, '\n'))
}

func (x *reader) bad(format string, args ...any) {
	if len(x.errs) < maxFindings {
		x.errs = append(x.errs, fmt.Errorf("%s: "+format, append([]any{x.name}, args...)...))
	}
}

// identity is the id of a node: a number or a string.
func identity(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '"' && raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return "", false
	}
	return string(raw), true
}

// nodes numbers the nodes.
func (x *reader) nodes() {
	for i := range x.f.Nodes {
		n := &x.f.Nodes[i]
		raw := n.ID
		if raw == nil {
			raw = n.Name
		}
		id, ok := identity(raw)
		if !ok {
			x.bad("node %d of the list has neither an id nor a name that is a number or a string", i)
			continue
		}
		if other, twice := x.index[id]; twice {
			x.bad("node %s is listed twice, at %d and at %d", id, other, i)
			continue
		}
		x.index[id] = int32(i)
		x.ids = append(x.ids, json.RawMessage(id))
	}
}

// links reads the edges.
func (x *reader) links() {
	x.next, x.prev = make([][]int32, len(x.ids)), make([][]int32, len(x.ids))
	end := func(i int, what string, forms ...json.RawMessage) (int32, bool) {
		for _, raw := range forms {
			if id, ok := identity(raw); ok {
				k, known := x.index[id]
				if !known {
					x.bad("link %d: %s %s is not a node", i, what, id)
				}
				return k, known
			}
		}
		x.bad("link %d has no %s: want \"source\" and \"target\", or \"0\" and \"1\"", i, what)
		return 0, false
	}
	seen := make(map[[2]int32]bool, len(x.f.Links))
	for i := range x.f.Links {
		l := &x.f.Links[i]
		a, ok := end(i, "source", l.Source, l.From)
		b, ok2 := end(i, "target", l.Target, l.To)
		if !ok || !ok2 || seen[[2]int32{a, b}] {
			continue
		}
		seen[[2]int32{a, b}] = true
		x.next[a] = append(x.next[a], b)
		x.prev[b] = append(x.prev[b], a)
	}
}

// order is the file's order, or else first in, first out.
func (x *reader) order() []int32 {
	if len(x.f.Graph.Order) == 0 {
		return x.firstInFirstOut()
	}
	at := make([]int, len(x.ids))
	var order []int32
	for i, raw := range x.f.Graph.Order {
		id, _ := identity(raw)
		k, known := x.index[id]
		switch {
		case !known:
			x.bad("graph.order[%d]: %s is not a node", i, raw)
		case at[k] > 0:
			x.bad("graph.order[%d]: node %s is there already", i, id)
		default:
			at[k] = i + 1
			order = append(order, k)
		}
	}
	for k := range at {
		if at[k] == 0 {
			x.bad("graph.order leaves out node %s", x.ids[k])
		}
	}
	for b := range x.prev {
		for _, a := range x.prev[b] {
			if at[a] > 0 && at[b] > 0 && at[a] >= at[b] {
				x.bad("graph.order runs node %s before node %s, which it reads", x.ids[b], x.ids[a])
			}
		}
	}
	return order
}

// firstInFirstOut is Kahn's algorithm with a queue, nodes that are ready from the start in the file's order.
func (x *reader) firstInFirstOut() []int32 {
	waits := make([]int, len(x.ids))
	order := make([]int32, 0, len(x.ids))
	for b := range x.prev {
		if waits[b] = len(x.prev[b]); waits[b] == 0 {
			order = append(order, int32(b))
		}
	}
	for k := 0; k < len(order); k++ {
		for _, b := range x.next[order[k]] {
			if waits[b]--; waits[b] == 0 {
				order = append(order, b)
			}
		}
	}
	if len(order) < len(x.ids) {
		for b := range waits {
			if waits[b] > 0 {
				x.bad("the links form a cycle: node %s is on it or behind it", x.ids[b])
				break
			}
		}
	}
	return order
}

// graph makes the problem.
func (x *reader) graph(order []int32) *Graph {
	g := &Graph{Name: x.f.Graph.Name, Problem: memory.Problem{BudgetBytes: -1, Recompute: true}}
	if g.Name == "" {
		g.Name = x.name
	}
	at := make([]int32, len(order))
	for i, k := range order {
		at[k] = int32(i)
	}
	p := &g.Problem
	for i, k := range order {
		n := &x.f.Nodes[k]
		g.IDs = append(g.IDs, x.ids[k])
		o := memory.Op{Picos: x.cost(k, "duration", n.Duration, "cost_cpu", n.CostCPU), Out: []int32{int32(i)}, LastRerun: int32(len(order))}
		for _, a := range x.prev[k] {
			o.In = append(o.In, at[a])
		}
		slices.Sort(o.In)
		p.Ops = append(p.Ops, o)
		p.Values = append(p.Values, memory.Value{Bytes: x.cost(k, "out_cost", n.OutCost, "cost_ram", n.CostRAM), Def: int32(i), Becomes: -1})
	}
	return g
}

// cost reads a field that has one name in one form and another in the other.
func (x *reader) cost(k int32, first string, a *json.Number, second string, b *json.Number) int64 {
	field, num := first, a
	if num == nil {
		field, num = second, b
	}
	if num == nil {
		x.bad("node %s has neither %s nor %s", x.ids[k], first, second)
		return 0
	}
	c, err := num.Int64()
	if err != nil || c < 0 {
		x.bad("node %s: %s is %s, want a whole number that is not negative", x.ids[k], field, num.String())
		return 0
	}
	return c
}

// Schedule lists the node ids in the order in which a plan runs them; an id that comes again is a recompute. order says which position of the graph's order
// each op of the plan's problem is (memory.Free.Order); nil: the graph's order as it is.
func (g *Graph) Schedule(order []int32, s *memory.Solution) []json.RawMessage {
	id := func(j int32) json.RawMessage {
		if order != nil {
			j = order[j]
		}
		return g.IDs[j]
	}
	list := make([]json.RawMessage, 0, len(g.IDs)+len(s.Recomputes))
	next := 0
	for t := range int32(len(g.IDs)) {
		for ; next < len(s.Recomputes) && s.Recomputes[next].Stage == t; next++ {
			list = append(list, id(s.Recomputes[next].Op))
		}
		list = append(list, id(t))
	}
	return list
}

// BudgetBytes is permille of a peak, rounded up, as the benchmark's budgets are.
func BudgetBytes(peak, permille int64) int64 {
	whole, rest := peak/1000, peak%1000
	return whole*permille + (rest*permille+999)/1000
}
