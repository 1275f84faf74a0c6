package train

import (
	"fmt"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime/train/data"
)

// When the finite flag has fallen the run is over: nothing is written any more, and what remains is to say where it began. The program is run
// again on the same inputs, one instruction at a time, until an op gives NaN or an infinity although its operands held none.
//
// How true the second run is. Weights are updated in the step only while the flag stands. If it fell with the loss, or if updates are a program
// of their own, no weight has changed and the second run is the first again. If it fell with a later gradient, some updates had run, and
// the second run starts from their result; the message says so. Running statistics have moved once in any case.

// finite tells whether raw elements hold neither NaN nor an infinity. Integers are finite.
func finite(d ir.DType, raw []byte) bool { return data.FirstNotFinite(d, raw) < 0 }

// failed makes the error of a fallen flag. c is the program that reported it.
func (t *trainer) failed(c *call) error {
	head := fmt.Sprintf("step %d: the loss or a gradient is NaN or infinite", t.done)
	if t.o.Accumulate > 1 && c == t.step {
		head = fmt.Sprintf("step %d, microbatch %d: the loss or a gradient is NaN or infinite", t.done, t.now.micro)
	}
	e := &ir.Error{Kind: ir.Numeric, Remedy: "lower the learning rate, clip gradients (--clip-norm), or look at the data of this step"}
	bad, err := t.store.notFinite(t.save)
	switch {
	case err != nil:
		e.Cause = fmt.Errorf("%s; looking for the cause failed: %w", head, err)
		return e
	case c == t.update:
		e.Cause = fmt.Errorf("%s: the gradients overflow where they are added up over microbatches, each of them was finite; the weights are those from before the step%s", head, t.newest())
		return e
	}
	r := newReplay(t.plan, bad)
	if err := t.replay(c, r); err != nil {
		e.Cause = fmt.Errorf("%s; running the step again to find the node failed: %w", head, err)
		return e
	}
	if e.Origin = r.origin; !r.found || len(bad) > 0 {
		e.Origin = r.first
	}
	e.Cause = fmt.Errorf("%s: %s; %s%s", head, r.finding(bad, t.done == t.res.FirstStep), r.weights(t.update != nil), t.newest())
	return e
}

// replay runs a program again on the inputs of the failed run.
func (t *trainer) replay(c *call, r *replay) error {
	if err := c.set(&t.now); err != nil {
		return err
	}
	return t.exe.Replay(t.whole, c.name, r.visit)
}

// newest says what can be gone on from.
func (t *trainer) newest() string {
	if t.res.Checkpoint == "" {
		return "; nothing was saved"
	}
	return "; the newest checkpoint is " + t.res.Checkpoint
}

// taint says what a symbol holds.
type taint uint8

const (
	taintInf taint = 1 << iota
	taintNaN
)

// replay watches a program run.
type replay struct {
	plan    *plan.Plan
	taints  []taint                  // by symbol
	updates map[plan.SymbolID]string // new content of a weight -> its name
	buf     []byte                   // room for an output
	found   bool
	origin  ir.Origin
	op      string
	what    string    // NaN or an infinity
	first   ir.Origin // of the first op whose output is not finite, wherever that came from
	firstOp string
	flag    bool   // as the last flag of the program had it
	fell    string // the flag that fell first
	ran     []string
}

// newReplay knows which parameters are not finite already: those of the list, and literals that hold an infinity, as masks do.
func newReplay(p *plan.Plan, bad []string) *replay {
	r := &replay{plan: p, taints: make([]taint, len(p.Symbols)), updates: map[plan.SymbolID]string{}, flag: true}
	isBad := map[string]bool{}
	for _, name := range bad {
		isBad[name] = true
	}
	for i := range p.Params {
		q := &p.Params[i]
		at := &r.taints[p.Buffers[q.Storage].Holds]
		switch {
		case isBad[q.Name]:
			*at = taintInf | taintNaN
		case q.Init.Kind == ir.InitLiteral && q.Type.DType.IsFloat():
			*at = taintOf(q.Type.DType, q.Init.Literal)
		}
	}
	step, _ := p.Program("step")
	for _, x := range step.Exit {
		if q := &p.Params[x.Param]; q.Mutable && q.Role == ir.Weight {
			r.updates[p.Buffers[x.Buffer].Holds] = q.Name
		}
	}
	return r
}

// visit looks at what an instruction has written.
func (r *replay) visit(_ int, x *plan.Exec, read func(int, []byte) error) error {
	var in taint
	for _, ref := range x.In {
		if s := r.plan.Buffers[ref.Buffer].Holds; s >= 0 {
			in |= r.taints[s]
		}
	}
	for i, ref := range x.Out {
		s := r.plan.Buffers[ref.Buffer].Holds
		if name, ok := r.updates[s]; ok && s >= 0 && r.flag {
			r.ran = append(r.ran, name)
		}
		isFlag := x.Phase == ir.Update && ref.Type.DType == ir.Bool && len(ref.Type.Shape) == 0
		if !isFlag && !ref.Type.DType.IsFloat() {
			continue
		}
		n := ref.Type.Bytes()
		if int64(cap(r.buf)) < n {
			r.buf = make([]byte, n)
		}
		raw := r.buf[:n]
		if err := read(i, raw); err != nil {
			return err
		}
		if isFlag {
			if r.flag && raw[0] == 0 {
				r.flag, r.fell = false, x.Origin.Node
			}
			continue
		}
		out := taintOf(ref.Type.DType, raw)
		if s >= 0 {
			r.taints[s] = out
		}
		if out == 0 || len(x.In) == 0 { // an op without operands writes the infinity that it was told to
			continue
		}
		if r.firstOp == "" {
			r.first, r.firstOp = x.Origin, ir.OpName(x.Op)
		}
		if r.found || in != 0 && (in&taintNaN != 0 || out&taintNaN == 0) {
			continue
		}
		r.found, r.origin, r.op, r.what = true, x.Origin, ir.OpName(x.Op), "an infinity"
		if out&taintNaN != 0 {
			r.what = "NaN"
		}
	}
	return nil
}

// taintOf looks at every element.
func taintOf(d ir.DType, raw []byte) taint {
	var t taint
	size := d.Bits() / 8
	for at := int64(0); at < int64(len(raw)); at += size {
		i := data.FirstNotFinite(d, raw[at:])
		if i < 0 {
			break
		}
		at += i * size
		if isNaN(d, raw[at:at+size]) {
			return t | taintNaN
		}
		t |= taintInf
	}
	return t
}

// isNaN looks at one element whose exponent is all ones.
func isNaN(d ir.DType, raw []byte) bool {
	one := result{t: ir.T(d), raw: raw}
	x := one.float(0)
	return x != x
}

// finding says where it began. first: no step was run before this one.
func (r *replay) finding(bad []string, first bool) string {
	reader := ""
	if r.firstOp != "" {
		reader = ", and " + r.firstOp + " is the first to give such a number"
	}
	switch {
	case len(bad) > 0 && first && len(r.ran) == 0:
		return some(bad) + " held NaN or an infinity from the start" + reader
	case len(bad) > 0:
		return "an update has made " + some(bad) + " NaN or infinite" + reader
	case r.found:
		return fmt.Sprintf("%s is the first to give %s from finite operands", r.op, r.what)
	case r.flag:
		return "running the step again from the weights as they are now does not show it"
	}
	return "no op gives NaN or an infinity from finite operands"
}

// weights says what state the weights are in.
func (r *replay) weights(separate bool) string {
	total := len(r.updates)
	switch {
	case separate, !r.flag && len(r.ran) == 0:
		return "the weights in memory are those from before the step"
	case r.flag:
		return fmt.Sprintf("some of the %d updates of this step had run", total)
	}
	return fmt.Sprintf("%d of %d updates of this step had run before (%s)", len(r.ran), total, some(r.ran))
}
