// Package check proves a plan before it runs. It believes nothing: it imports neither passes nor runtime, shares no code with what
// made the plan, and works out everything anew from plan.Plan and Op.Infer.
//
// How. After the shape of the plan (indices, sizes, arenas, spans) is found sound, every program is replayed on symbols. For each byte
// range of each arena the replay knows which part of which symbol it holds, which instruction wrote it and which instruction of each
// lane read it last. Each lane carries a vector clock; a Wait joins the clock that its instruction had. A read must find its symbol,
// written by an instruction that surely came before; a write must surely come after every earlier read and write of the bytes that it
// kills, whatever buffer they belonged to. A repeating program is replayed twice without a barrier in between.
//
// What it checks:
//   - indices, lanes, sizes and types; operands agree with Op.Infer; references lie in their buffer, buffers in their arena, aligned; an
//     arena is exactly as large as its highest buffer end and within its budget;
//   - spans are well formed; buffers that share bytes are live at disjoint instructions; an operand is handed over to an output in place
//     only where the op declares the pair and the bytes are the same; accesses lie within spans;
//   - each read finds every byte, each copy carries its symbol, in order across lanes (read after write, write after read, write after
//     write), within a run and from one run to the next;
//   - waits look backwards, so no lane can wait for ever, and to other lanes;
//   - whatever writes a symbol again is the same op with the same attributes on the same symbols as the first time; stateful ops run
//     once; inputs, frozen parameters and constants are never computed anew and frozen content is never copied away from the device;
//   - scratch belongs to its instruction;
//   - parameters lie, with their content whole, where every program that may follow expects them; inputs and results likewise; program save
//     leaves the content of every mutable parameter but accumulators in its storage.
//
// What it does not check:
//   - that an op's kernel computes what the op means, or that scratch is large enough for it (the device knows);
//   - that the plan computes the right graph: an instruction list that trains something else consistently passes. Which new symbol
//     becomes a parameter's content is believed;
//   - the position within a symbol of bytes that an op (not a copy) reads from a staging buffer;
//   - predicted times, the report, names, phases and categories other than staging;
//   - that the caller leaves inputs and results alone while a program runs.
package check

import (
	"fmt"
	"strings"

	"aitk/ir"
	"aitk/ir/plan"
)

// maxProblems bounds the report; a plan that is wrong throughout needs no complete list.
const maxProblems = 40

// Kind sorts problems.
type Kind string

// The kinds of problems.
const (
	Malformed Kind = "malformed" // an index, name, lane or size that means nothing
	Types     Kind = "types"     // operands disagree with Op.Infer, or sizes with types
	Bounds    Kind = "bounds"    // outside a buffer or an arena, misaligned, arena over budget or not tight
	Spans     Kind = "spans"     // overlapping live buffers, accesses outside spans
	Content   Kind = "content"   // a read, exit or result that does not find its symbol
	Race      Kind = "race"      // nothing orders two accesses on two lanes
	Waiting   Kind = "waiting"   // a wait that waits for nothing, or could never end
	Identity  Kind = "identity"  // a recompute that is none, a stateful op run twice, frozen content changed or copied out
	Residence Kind = "residence" // parameters elsewhere than the next program expects them
)

// Problem is one breach, with both culprits in its text.
type Problem struct {
	Kind Kind
	Text string
}

// Error lists the problems of a plan in the order in which they were found.
type Error struct {
	Problems []Problem
	More     int // problems beyond the ones listed
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan is wrong in %d ways", len(e.Problems)+e.More)
	if len(e.Problems)+e.More == 1 {
		b.Reset()
		b.WriteString("plan is wrong")
	}
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "\n  %s: %s", p.Kind, p.Text)
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\n  and %d more", e.More)
	}
	return b.String()
}

// Check returns nil for a sound plan and an *Error otherwise. It never panics, whatever the plan holds, and changes nothing.
func Check(p *plan.Plan) error {
	if p == nil {
		return &Error{Problems: []Problem{{Malformed, "no plan"}}}
	}
	c := &checker{p: p, seen: map[string]bool{}}
	c.structure()
	if len(c.err.Problems) == 0 { // from here on every index is good
		c.arenas()
		c.spans()
		c.parameters()
		for i := range p.Programs {
			c.typesOf(int32(i))
			c.accesses(int32(i))
			c.identity(int32(i))
			c.replay(int32(i))
		}
		c.passages()
	}
	if len(c.err.Problems) == 0 {
		return nil
	}
	return &c.err
}

type checker struct {
	p    *plan.Plan
	err  Error
	seen map[string]bool

	content  []plan.SymbolID // by parameter: the symbol that names its content between programs; NoSymbol while unknown
	owner    []int32         // by symbol: the parameter whose content it names; -1
	regionOf []int32         // by buffer
	regions  int
}

// add records a problem once.
func (c *checker) add(k Kind, format string, args ...any) {
	if len(c.err.Problems) >= maxProblems {
		c.err.More++
		return
	}
	text := fmt.Sprintf(format, args...)
	if c.seen[text] {
		return
	}
	c.seen[text] = true
	c.err.Problems = append(c.err.Problems, Problem{k, text})
}

// full says that further problems would only be counted; loops whose work grows with the number of problems stop on it.
func (c *checker) full() bool { return len(c.err.Problems) >= maxProblems }

// at names an instruction: step pc 12 (compute MatMul, node "fc1").
func (c *checker) at(prog, pc int32) string {
	pr := &c.p.Programs[prog]
	var what string
	switch x := pr.Instrs[pc].(type) {
	case *plan.Exec:
		what = fmt.Sprintf("%s %s", x.Lane, ir.OpName(x.Op))
		if o := x.Origin.String(); o != "" {
			what += ", " + o
		}
	case *plan.Copy:
		what = fmt.Sprintf("%s %s b%d -> b%d", x.Lane, x.Kind, x.Src.Buffer, x.Dst.Buffer)
	case *plan.Wait:
		what = fmt.Sprintf("%s wait for pc %d", x.Lane, x.On)
		if x.Back != 0 {
			what += " of the run before"
		}
	}
	return fmt.Sprintf("%s pc %d (%s)", pr.Name, pc, what)
}

// buf names a buffer: b12 "fc1.out" at device 4096+512.
func (c *checker) buf(b plan.BufferID) string {
	x := &c.p.Buffers[b]
	return fmt.Sprintf("b%d %q at %s %d+%d", b, x.Name, x.Type.Space, x.Offset, x.Bytes)
}

// sym names a symbol: %5 "fc1.out" would be an ID of the graph, so symbols print as s5.
func (c *checker) sym(s plan.SymbolID) string {
	if s == plan.NoSymbol {
		return "nothing"
	}
	return fmt.Sprintf("s%d %q", s, c.p.Symbols[s].Name)
}

func (c *checker) param(i int32) string { return fmt.Sprintf("parameter %q", c.p.Params[i].Name) }

// isInit tells whether a program is the one that loads parameters: it runs first and only once.
func isInit(pr *plan.Program) bool { return pr.Name == "init" }
