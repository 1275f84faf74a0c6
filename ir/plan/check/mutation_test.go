package check_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/ir/plan/check"
)

// drop takes an instruction out and renumbers spans and waits, as a pass that forgot it would have.
func (m *maker) drop(prog, pc int32) {
	pr := &m.p.Programs[prog]
	pr.Instrs = slices.Delete(pr.Instrs, int(pc), int(pc)+1)
	for _, i := range pr.Instrs {
		if w, ok := i.(*plan.Wait); ok && w.On > pc {
			w.On--
		}
	}
	for b := range m.p.Buffers {
		for k := range m.p.Buffers[b].Live {
			if s := &m.p.Buffers[b].Live[k]; s.Program == prog {
				if s.Start > pc {
					s.Start--
				}
				if s.End > pc {
					s.End--
				}
			}
		}
	}
}

// move puts instruction from at position to (after removal), spans and waits by position unchanged.
func (m *maker) move(prog, from, to int32) {
	pr := &m.p.Programs[prog]
	i := pr.Instrs[from]
	pr.Instrs = slices.Insert(slices.Delete(pr.Instrs, int(from), int(from)+1), int(to), i)
}

func (m *maker) step(pc int) plan.Instr          { return m.p.Programs[pStep].Instrs[pc] }
func (m *maker) exec1(pc int) *plan.Exec         { return m.step(pc).(*plan.Exec) }
func (m *maker) copy1(pc int) *plan.Copy         { return m.step(pc).(*plan.Copy) }
func (m *maker) buffer(name string) *plan.Buffer { return &m.p.Buffers[m.bufs[name]] }

// Each mutation breaks the good plan in one way; the checker must name both culprits (all words of one line) and the kind.
var mutations = []struct {
	name  string
	wreck func(m *maker)
	kind  check.Kind
	words []string
}{
	{"overlap two live buffers", func(m *maker) { m.buffer("b").Offset = 192 }, check.Spans, []string{`"a"`, `"b"`, "overlap"}},
	{"overlap in part", func(m *maker) { m.buffer("c").Offset = 64 }, check.Spans, []string{`"v"`, `"c"`, "overlap"}},
	{"overlap another program's parameter", func(m *maker) { m.buffer("ey").Offset = 64 }, check.Spans, []string{`"v"`, `"ey"`, "eval"}},
	{"drop the wait before a copy out", func(m *maker) { m.drop(pStep, 1) }, check.Race, []string{`node "A"`, "swap-out", "lane d2h does not wait"}},
	{"drop the wait that frees swapped bytes", func(m *maker) { m.drop(pStep, 5) }, check.Race, []string{"swap-out", `node "D"`, "lane compute does not wait"}},
	{"drop the wait before reuse by a copy in", func(m *maker) { m.drop(pStep, 9) }, check.Race, []string{`node "D"`, `"a2"`, "lane h2d does not wait"}},
	{"drop the wait for a swap-in", func(m *maker) { m.drop(pStep, 11) }, check.Race, []string{`node "B"`, "swap-in", "lane compute does not wait"}},
	{"drop the wait for the run before", func(m *maker) { m.drop(pStep, 7) }, check.Race, []string{"swap-in", "swap-out", "of the run before"}},
	{"wait for this run instead of the run before", func(m *maker) { m.step(7).(*plan.Wait).Back = 0 }, check.Waiting, []string{"pc 7", "pc 17", "later"}},
	{"wait for the run before instead of this run", func(m *maker) { m.step(5).(*plan.Wait).Back = 1 }, check.Race, []string{"pc 2 ", "pc 6 "}},
	{"wait for another instruction", func(m *maker) { m.step(16).(*plan.Wait).On = 6 }, check.Race, []string{"pc 15", "pc 17"}},
	{"wait for the own lane", func(m *maker) { m.step(16).(*plan.Wait).On = 2 }, check.Waiting, []string{"pc 16", "pc 2 "}},
	{"wait across runs in a program that runs once", func(m *maker) { m.p.Programs[pStep].Repeat = false }, check.Waiting, []string{"pc 7", "step does not repeat"}},
	{"move a swap-in after its use", func(m *maker) { m.move(pStep, 10, 12) }, check.Content, []string{`node "B"`, `"a2"`, `"c"`}},
	{"move a swap-out before its source is made", func(m *maker) { m.move(pStep, 2, 0) }, check.Content, []string{"pc 0 ", `"a"`, "never written"}},
	{"write a frozen weight", func(m *maker) { m.exec1(3).Out[0] = m.ref("v") }, check.Identity, []string{`node "B"`, `"v"`, "frozen"}},
	{"copy a frozen weight out", func(m *maker) {
		i := &m.p.Programs[pSave].Instrs
		*i = append(*i, m.copy(plan.Write, plan.CopySave, "v.file", "v"))
		for _, b := range []string{"w", "v", "hm"} {
			m.buffer(b).Live[3].End++
		}
	}, check.Identity, []string{"save pc 2", `"v"`, "frozen"}},
	{"claim other content for a frozen weight", func(m *maker) { m.p.Programs[pStep].Exit[1].Buffer = m.bufs["w'"] }, check.Identity, []string{`"w'"`, `"v"`}},
	{"overwrite an input", func(m *maker) { m.exec1(3).Out[0] = m.ref("x"); m.buffer("x").Live[0].End = 9 }, check.Identity, []string{`node "B"`, `input "x"`}},
	{"exceed the budget", func(m *maker) { m.p.Arenas[0].BudgetBytes = 400 }, check.Bounds, []string{"576", "400"}},
	{"arena larger than its use", func(m *maker) { m.p.Arenas[0].Bytes = 600 }, check.Bounds, []string{"600", `"md"`}},
	{"buffer beyond its arena", func(m *maker) { m.buffer("scratch").Offset = 576 }, check.Bounds, []string{`"scratch"`, "outside the arena"}},
	{"misalign", func(m *maker) { m.buffer("loss").Offset = 444 }, check.Bounds, []string{`"loss"`, "aligned"}},
	{"no arena", func(m *maker) { m.p.Arenas = m.p.Arenas[:1] }, check.Bounds, []string{`"hm"`, "no arena in space pinned"}},
	{"reference beyond its buffer", func(m *maker) { m.copy1(2).Dst.Offset = 8 }, check.Bounds, []string{"pc 2 ", `"ha"`}},
	{"fake a recompute with another input", func(m *maker) { m.exec1(12).In[0] = m.ref("d") }, check.Identity, []string{"pc 12", "pc 3 ", `"d"`, `"a"`}},
	{"wrong attributes in a recompute", func(m *maker) { m.exec1(12).Op = neg{Bias: 3} }, check.Identity, []string{"pc 12", "pc 3 ", "attributes"}},
	{"another op in a recompute", func(m *maker) {
		x := m.exec1(12)
		x.Op, x.In = mul{}, []plan.Ref{m.ref("a2"), m.ref("a2")}
	}, check.Identity, []string{"pc 12", "pc 3 ", "another op"}},
	{"leave a parameter elsewhere", func(m *maker) {
		m.p.Programs[pStep].Exit[0].Buffer = m.bufs["md'"]
	}, check.Residence, []string{`parameter "w"`, `"md'"`, "step", "eval"}},
	{"leave a parameter on the device that lives on the host", func(m *maker) {
		m.p.Programs[pStep].Exit[2].Buffer = m.bufs["md'"]
	}, check.Residence, []string{`parameter "m"`, `"hm"`, `"md'"`}},
	{"forget a parameter at the end", func(m *maker) { m.p.Programs[pEval].Exit = m.p.Programs[pEval].Exit[:2] }, check.Residence, []string{`parameter "m"`, "eval leaves it nowhere"}},
	{"two parameters in one place", func(m *maker) { m.p.Programs[pEval].Entry[0].Buffer = m.bufs["v"] }, check.Residence, []string{`"w"`, `"v"`}},
	{"claim another parameter's content", func(m *maker) { m.p.Programs[pStep].Exit[0].Buffer = m.bufs["v"] }, check.Residence, []string{`parameter "w"`, `"v"`, "step ends"}},
	{"claim an input as content", func(m *maker) { m.p.Programs[pStep].Exit[0].Buffer = m.bufs["x"] }, check.Residence, []string{`parameter "w"`, `"x"`, `input "x"`}},
	{"claim another program's value as content", func(m *maker) { m.p.Programs[pStep].Exit[0].Buffer = m.bufs["ey"] }, check.Residence, []string{`parameter "w"`, `"ey"`}},
	{"keep a stale copy of what was updated", func(m *maker) {
		exit := &m.p.Programs[pStep].Exit
		*exit = append(*exit, plan.Residency{Param: 0, Buffer: m.bufs["w"]})
	}, check.Residence, []string{`step ends`, `parameter "w"`, `"w'"`, "one of them is stale"}},
	{"drop the copy that takes state home", func(m *maker) { m.step(7).(*plan.Wait).On = 2; m.drop(pStep, 17) }, check.Content, []string{`parameter "m"`, `"hm'"`, `"m'"`}},
	{"drop the update", func(m *maker) { m.drop(pStep, 15) }, check.Content, []string{`parameter "w"`, `"w'"`}},
	{"drop a forward op", func(m *maker) { m.drop(pStep, 4) }, check.Content, []string{`node "D"`, `"c"`}},
	{"drop a load", func(m *maker) { m.drop(pInit, 0) }, check.Content, []string{"init ends", `parameter "w"`, "never written"}},
	{"shift an offset in a reference", func(m *maker) {
		for _, r := range []*plan.Ref{&m.copy1(10).Src, &m.copy1(10).Dst} {
			r.Type = ir.T(ir.F32, 8)
		}
		m.copy1(10).Src.Offset = 32
	}, check.Content, []string{"pc 10", "bytes from 32", `"a2"`}},
	{"copy only a part", func(m *maker) {
		for _, r := range []*plan.Ref{&m.copy1(10).Src, &m.copy1(10).Dst} {
			r.Type = ir.T(ir.F32, 8)
		}
	}, check.Content, []string{`node "B"`, `"a2"`, "byte 32"}},
	{"swap two staging chunks", func(m *maker) {
		i := m.p.Programs[pInit].Instrs
		i[2].(*plan.Copy).Src.Offset, i[6].(*plan.Copy).Src.Offset = 32, 0
	}, check.Content, []string{"init pc 4", `"v"`}},
	{"reuse staging too early", func(m *maker) { m.drop(pInit, 5) }, check.Race, []string{"init pc 5", "init pc 4", `"staging"`}},
	{"truncate a live span", func(m *maker) { m.buffer("d").Live[0].End = 12 }, check.Spans, []string{`node "G"`, `"d"`, "6..12"}},
	{"begin a span late", func(m *maker) { m.buffer("c").Live[0].Start = 5 }, check.Spans, []string{`node "C"`, `"c"`}},
	{"end a result early", func(m *maker) { m.buffer("loss").Live[0].End = 17 }, check.Spans, []string{"result loss", `"loss"`, "pc 17"}},
	{"start an input late", func(m *maker) { m.buffer("ex").Live = []plan.Span{} }, check.Spans, []string{"input x", `"ex"`, "eval"}},
	{"overwrite a result", func(m *maker) {
		m.exec1(13).Out[0], m.exec1(14).In[0] = m.ref("g"), m.ref("g")
		m.copy1(17).Dst = m.ref("hm'")
		m.p.Programs[pStep].Results[0].Ref = m.ref("d")
	}, check.Content, []string{`result "loss"`, `"d"`, `"g"`, `node "G"`}},
	{"swap a lane", func(m *maker) { m.copy1(10).Lane = plan.D2H }, check.Malformed, []string{"pc 10", "lane d2h does not copy"}},
	{"swap an op's lane", func(m *maker) { m.exec1(3).Lane = plan.Host }, check.Malformed, []string{`node "B"`, "lane host cannot reach"}},
	{"swap a lane of a wait", func(m *maker) { m.step(11).(*plan.Wait).Lane = plan.D2H }, check.Race, []string{"pc 12", "pc 10"}},
	{"duplicate a stateful op", func(m *maker) {
		m.p.Programs[pStep].Instrs[14] = m.exec1(15)
	}, check.Identity, []string{"pc 15", "pc 14", "updates"}},
	{"recompute a stateful op", func(m *maker) { m.exec1(15).Recompute = true }, check.Identity, []string{`node "U"`, "stateful"}},
	{"operand of another type", func(m *maker) { m.exec1(4).In[1].Type = ir.T(ir.F32, 4, 4) }, check.Types, []string{`node "C"`, "differ"}},
	{"output of another type", func(m *maker) { m.exec1(14).Out[0] = m.ref("scratch"); m.buffer("scratch").Holds = m.syms["loss"] }, check.Types, []string{`"scratch"`, `"loss"`}},
	{"output missing", func(m *maker) { m.exec1(15).Out = m.exec1(15).Out[:1] }, check.Types, []string{`node "U"`, "1 results", "has 2"}},
	{"copy of the wrong size", func(m *maker) { m.copy1(2).Src.Type = ir.T(ir.F32, 15) }, check.Types, []string{"60 bytes", `"a"`, "64 bytes", `"ha"`}},
	{"copy to another symbol", func(m *maker) { m.copy1(10).Dst = m.ref("c") }, check.Identity, []string{"pc 10", `"ha"`, `"c"`}},
	{"in place where the op forbids it", func(m *maker) { m.exec1(13).Op = total{}; m.exec1(14).Op = mul{} }, check.Spans, []string{`node "G"`, `"d"`, `"g"`}},
	{"in place on other bytes", func(m *maker) { m.buffer("w'").Offset = 320 }, check.Spans, []string{`node "U"`, `"w"`}},
	{"scratch not live", func(m *maker) { m.buffer("scratch").Live[0] = plan.Span{Program: pStep, Start: 14, End: 15} }, check.Spans, []string{`node "G"`, `"scratch"`}},
	{"scratch over a live buffer", func(m *maker) { m.buffer("scratch").Offset = 128 }, check.Spans, []string{`"scratch"`, `"b2"`}},
	{"scratch without a span over live bytes", func(m *maker) { m.buffer("scratch").Offset, m.buffer("scratch").Live = 0, nil }, check.Content, []string{`node "U"`, `"w"`, "scratch of", `node "G"`}},
	{"a symbol of another program", func(m *maker) { m.p.Symbols[m.syms["b"]].Program = pEval }, check.Identity, []string{`node "B"`, "belongs to eval"}},
	{"read a value left over from the run before", func(m *maker) { m.exec1(0).In[0] = m.ref("ey") }, check.Content, []string{`node "A"`, `"ey"`}},
	{"save from where the content is not", func(m *maker) { m.p.Programs[pSave].Instrs[0].(*plan.Copy).Src = m.ref("w'") }, check.Identity, []string{"save pc 0", `"w'"`, `"w.file"`}},
}

func TestMutations(t *testing.T) {
	for _, c := range mutations {
		t.Run(c.name, func(t *testing.T) {
			m := goodMaker()
			c.wreck(m)
			err := check.Check(m.p)
			e, ok := errors.AsType[*check.Error](err)
			if !ok {
				t.Fatalf("not caught: %v", err)
			}
			for _, p := range e.Problems {
				if p.Kind == c.kind && !slices.ContainsFunc(c.words, func(w string) bool { return !strings.Contains(p.Text, w) }) {
					return
				}
			}
			t.Fatalf("no problem of kind %s names %q:\n%v", c.kind, c.words, err)
		})
	}
}
