package plan

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"aitk/ir"
)

// WriteExplain writes every program as a table, one instruction a line, and then what became of each content that the step reads or makes (why.go):
//
//	pc   lane     instr                 reads  writes         live      from
//	012  compute  MatMul{transB=true}   b3 b7  b12@0x0040000  11.5 MiB  fc1/Gemm
//	014  d2h      swap-out b12 -> h2    b12    h2@0x0000000   11.5 MiB  conv1, next use pc 88
//
// live is bytes of the device. Letters of buffers tell their space: b device, h pinned, p pageable, f storage.
func WriteExplain(w io.Writer, p *Plan) error {
	out := bufio.NewWriter(w)
	peak := PeakOf(p, ir.Device)
	for i := range p.Programs {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := p.explainProgram(out, int32(i), peak); err != nil {
			return err
		}
	}
	if err := p.explainDecisions(out); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n# %s\n", p.headline())
	return out.Flush()
}

func (p *Plan) explainProgram(w io.Writer, prog int32, peak Peak) error {
	pr := &p.Programs[prog]
	run := Timeline(p, prog)
	fmt.Fprintf(w, "# program %s: %d instructions, %s\n", plain(pr.Name), len(pr.Instrs), FormatPicos(run.Picos))
	for _, x := range pr.Inputs {
		fmt.Fprintf(w, "# input %s: %v in %s\n", plain(x.Name), x.Ref.Type, p.place(x.Ref))
	}
	for _, x := range pr.Results {
		fmt.Fprintf(w, "# result %s: %v in %s\n", plain(x.Name), x.Ref.Type, p.place(x.Ref))
	}
	live := LiveBytes(p, prog)[ir.Device]
	first, next := p.firstWrites(pr), p.nextReads(pr)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "pc\tlane\tinstr\treads\twrites\tlive\tfrom")
	for pc, i := range pr.Instrs {
		bytes := "0 B"
		if live != nil {
			bytes = FormatBytes(live[pc])
		}
		reads, writes, why := p.explainInstr(int32(pc), i, first, next)
		if peak.Program == prog && peak.At == int32(pc) {
			why = strings.TrimPrefix(why+"  <- peak", "  ")
		}
		fmt.Fprintf(t, "%03d\t%s\t%s\t%s\t%s\t%s\t%s\n", pc, LaneOf(i), p.instrText(i), reads, writes, bytes, why)
	}
	return t.Flush()
}

// instrText is what an instruction does, without operands.
func (p *Plan) instrText(i Instr) string {
	switch x := i.(type) {
	case *Exec:
		return plain(ir.FormatOp(x.Op))
	case *Copy:
		return fmt.Sprintf("%s %s -> %s", x.Kind, p.refName(x.Src), p.refName(x.Dst))
	case *Wait:
		if x.Back > 0 {
			return fmt.Sprintf("wait %03d of the run before", x.On)
		}
		return fmt.Sprintf("wait %03d", x.On)
	}
	return "?"
}

func (p *Plan) explainInstr(pc int32, i Instr, first, next []int32) (reads, writes, why string) {
	switch x := i.(type) {
	case *Exec:
		var in, out []string
		for _, r := range x.In {
			in = append(in, p.refName(r))
		}
		for _, r := range x.Out {
			out = append(out, p.place(r))
		}
		why = plain(from(x.Origin))
		if x.Recompute && len(x.Out) > 0 {
			if s := p.Buffers[x.Out[0].Buffer].Holds; s >= 0 && first[s] >= 0 && first[s] != pc {
				why += fmt.Sprintf(", recompute of pc %d", first[s])
			}
		}
		if x.Scratch != NoBuffer {
			why += ", scratch " + FormatBytes(p.Buffers[x.Scratch].Bytes)
		}
		return strings.Join(in, " "), strings.Join(out, " "), strings.TrimPrefix(why, ", ")
	case *Copy:
		why = plain(p.symbolName(p.Buffers[x.Src.Buffer].Holds)) + ", " + FormatBytes(x.Src.Type.Bytes())
		if next[pc] >= 0 {
			why += fmt.Sprintf(", next use pc %d", next[pc])
		}
		return p.refName(x.Src), p.place(x.Dst), why
	}
	return "", "", ""
}

// headline is the plan in one line.
func (p *Plan) headline() string {
	r := &p.Report
	peak, of := PeakOf(p, ir.Device).Bytes, "no budget"
	if r.BudgetBytes >= 0 {
		of = "of " + FormatBytes(r.BudgetBytes)
	}
	var arena int64
	if a := p.Arena(ir.Device); a != nil {
		arena = a.Bytes
	}
	s := fmt.Sprintf("peak %s (%s); arena %s; bound %s; fragmentation %s; moved %s; recomputed ", FormatBytes(peak), of, FormatBytes(arena),
		FormatBytes(r.BoundBytes), percent(arena-peak, arena), FormatBytes(r.SwapOutBytes+r.SwapInBytes))
	if r.TotalFLOPs > 0 {
		return s + percent(r.RecomputedFLOPs, r.TotalFLOPs) + " of FLOPs"
	}
	return s + fmt.Sprintf("%d nodes", r.RecomputedNodes)
}
