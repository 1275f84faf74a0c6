package plan

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"aitk/ir"
)

// WriteDOT draws the schedule of program step (or of the first program, if there is no step) for Graphviz. Time runs downwards, one op
// a row. Copies stand beside the op after which they are issued. Boxes around them are the halves of the step. Edges, by colour and style:
//
//	grey, thin            a value from the op that makes it to its last reader; a large plan shows near ones only, and "till" in the box
//	blue, bold            swap-out, with its bytes
//	green, bold, dashed   swap-in, with its bytes; dotted from the swap-out to the swap-in
//	orange, dashed        recompute: from the first run of the op to the next, with the bytes that were free in between
//
// The op at the device peak is red. Waits are not drawn: they are in the table of WriteExplain.
func WriteDOT(w io.Writer, p *Plan) error {
	out := bufio.NewWriter(w)
	d := &drawing{p: p, w: out}
	d.draw()
	return out.Flush()
}

// farRows is the distance from which an edge goes round at the side instead of through the rows.
const farRows = 6

// manyRows is from where on values that are just kept get no edge when they are used far away: Graphviz would take minutes, and the
// edges of what moves would drown.
const manyRows = 120

// copyInches is the least width of a copy's box.
const copyInches = 2.2

type drawing struct {
	p     *Plan
	w     *bufio.Writer
	pr    *Program
	prog  int32
	first []int32
}

func (d *drawing) draw() {
	fmt.Fprintf(d.w, "digraph plan {\n")
	fmt.Fprintf(d.w, "  rankdir=TB; ranksep=0.12; nodesep=0.25; newrank=true; nslimit=2; mclimit=0.5; fontname=\"Helvetica\"; labelloc=t; labeljust=l;\n")
	fmt.Fprintf(d.w, "  node [shape=box, style=filled, fillcolor=white, color=\"#888888\", fontname=\"Courier\", fontsize=9, height=0.2, margin=\"0.08,0.03\"];\n")
	fmt.Fprintf(d.w, "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#bbbbbb\", arrowsize=0.5];\n")
	if step, i := d.p.Program("step"); step != nil {
		d.pr, d.prog = step, i
	} else if len(d.p.Programs) > 0 {
		d.pr = &d.p.Programs[0]
	}
	title := "plan of " + cmp.Or(plain(d.p.Model), "a graph")
	if d.pr != nil {
		title = "program " + plain(d.pr.Name) + " of " + cmp.Or(plain(d.p.Model), "a graph")
	}
	fmt.Fprintf(d.w, "  label=%s;\n", quote(title+"\n"+d.p.headline()+"\nblue: swap-out   green: swap-in   orange: recompute   red: peak   @ offset in the arena\n"))
	if d.pr != nil {
		d.first = d.p.firstWrites(d.pr)
		d.nodes()
		d.order()
		d.values()
	}
	fmt.Fprintf(d.w, "}\n")
}

// quote makes a DOT string of text in which newlines end left-aligned lines; nothing in it is markup or an escape.
func quote(s string) string {
	r := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\l`, "&", "&amp;")
	return `"` + r.Replace(s) + `"`
}

// halves cuts the program where the backward half begins and where only updates follow.
func (d *drawing) halves() (backward, update int) {
	backward, update = len(d.pr.Instrs), len(d.pr.Instrs)
	for pc, i := range d.pr.Instrs {
		if x, ok := i.(*Exec); ok {
			if x.Phase == ir.Backward {
				backward, update = min(backward, pc), len(d.pr.Instrs)
			} else if x.Phase == ir.Update && update == len(d.pr.Instrs) {
				update = pc
			}
		}
	}
	return min(backward, update), update
}

func (d *drawing) nodes() {
	backward, update := d.halves()
	live := LiveBytes(d.p, d.prog)[ir.Device]
	peak := PeakOf(d.p, ir.Device)
	bounds := []struct {
		name, color string
		from, to    int
	}{{"forward", "#eef4fb", 0, backward}, {"backward", "#fdf3ea", backward, update}, {"update", "#eef7ee", update, len(d.pr.Instrs)}}
	for k, c := range bounds {
		if c.from >= c.to {
			continue
		}
		most := int64(0)
		for pc := c.from; pc < c.to && live != nil; pc++ {
			most = max(most, live[pc])
		}
		fmt.Fprintf(d.w, "  subgraph cluster_%d {\n    label=%s; style=filled; color=%q; fontsize=12;\n", k,
			quote(fmt.Sprintf("%s: peak %s", c.name, FormatBytes(most))), c.color)
		for pc := c.from; pc < c.to; pc++ {
			bytes := int64(0)
			if live != nil {
				bytes = live[pc]
			}
			d.node(pc, bytes, peak.Program == d.prog && int(peak.At) == pc)
		}
		fmt.Fprintf(d.w, "  }\n")
	}
}

func (d *drawing) node(pc int, live int64, peak bool) {
	var label, attrs string
	switch x := d.pr.Instrs[pc].(type) {
	case *Exec:
		label = fmt.Sprintf("%03d %s %s", pc, column(plain(ir.OpName(x.Op)), 14), column(plain(from(x.Origin)), 24))
		for k, r := range x.Out {
			if k > 0 {
				label += "\n" + column("", 4+15+24)
			}
			label += fmt.Sprintf(" %-14s %10s", d.p.place(r), FormatBytes(r.Type.Bytes()))
			if end := d.until(r.Buffer, pc); end > pc+1 {
				label += fmt.Sprintf(" till %03d", end-1)
			} else {
				label += column("", 9)
			}
			if k == 0 {
				word := "live"
				if peak {
					word = "PEAK"
				}
				label += fmt.Sprintf("  %s %10s", word, FormatBytes(live))
			}
		}
		label += "\n"
		switch {
		case x.Recompute:
			attrs = `, fillcolor="#fdd9a8"`
		case x.Phase == ir.Update:
			attrs = `, fillcolor="#d5ecd5"`
		}
		attrs += ", group=ops"
	case *Copy:
		label = fmt.Sprintf("%03d %s %s\n%s %s\n", pc, x.Kind, short(plain(d.p.symbolName(d.p.Buffers[x.Src.Buffer].Holds)), 24), d.p.place(x.Dst), FormatBytes(x.Dst.Type.Bytes()))
		color := "#cfe0f7"
		if inbound(x) {
			color = "#cdeccd"
		}
		attrs = fmt.Sprintf(", fillcolor=%q, style=\"filled,rounded\", width=%g", color, copyInches)
	default:
		return
	}
	if peak {
		attrs += `, color="#d00000", fontcolor="#d00000", penwidth=2.5`
	}
	fmt.Fprintf(d.w, "    i%d [label=%s%s];\n", pc, quote(label), attrs)
}

// until is where the span of b that holds pc ends.
func (d *drawing) until(b BufferID, pc int) int {
	for _, s := range d.p.Buffers[b].Live {
		if s.Program == d.prog && int(s.Start) <= pc && pc < int(s.End) {
			return int(s.End)
		}
	}
	return pc
}

// column is text cut and filled to n characters.
func column(s string, n int) string { return fmt.Sprintf("%-*s", n, short(s, n)) }

func inbound(x *Copy) bool { return x.Kind == CopySwapIn || x.Kind == CopyLoad }

// order gives every op a row, in time order, and puts a copy beside the op after which it is issued; further ones get rows of their own.
// Rows without a copy have an empty box of its width there: so the columns stay straight, and long edges keep out of them.
func (d *drawing) order() {
	last, beside, above := -1, "", "" // the row under way, its right box, and that of the row before
	copies := slices.ContainsFunc(d.pr.Instrs, func(i Instr) bool { _, ok := i.(*Copy); return ok })
	finish := func() {
		if _, op := d.at(last).(*Exec); !op || !copies {
			return
		}
		if beside == "" {
			beside = fmt.Sprintf("e%d", last)
			fmt.Fprintf(d.w, "  %s [style=invis, label=\"\", width=%g, fixedsize=true];\n", beside, copyInches)
		}
		fmt.Fprintf(d.w, "  { rank=same; i%d -> %s [style=invis]; }\n", last, beside)
		if above != "" {
			fmt.Fprintf(d.w, "  %s -> %s [style=invis, weight=50];\n", above, beside)
		}
		above = beside
	}
	for pc, i := range d.pr.Instrs {
		switch i.(type) {
		case *Wait:
			continue
		case *Copy:
			if _, op := d.at(last).(*Exec); op && beside == "" {
				beside = fmt.Sprintf("i%d", pc)
				continue
			}
		}
		finish()
		if last >= 0 {
			fmt.Fprintf(d.w, "  i%d -> i%d [style=invis, weight=50];\n", last, pc)
		}
		last, beside = pc, ""
	}
	finish()
}

func (d *drawing) at(pc int) Instr {
	if pc < 0 {
		return nil
	}
	return d.pr.Instrs[pc]
}

// values draws where content comes from and goes to.
func (d *drawing) values() {
	made := make([]int, len(d.p.Symbols)) // the instruction that made the newest device copy of a symbol
	read := make([]int, len(d.p.Symbols)) // its last reader
	left := make([]int, len(d.p.Symbols)) // the newest swap-out
	for s := range made {
		made[s], read[s], left[s] = -1, -1, -1
	}
	kept := func(s SymbolID) {
		if made[s] >= 0 && read[s] >= 0 {
			if _, op := d.pr.Instrs[made[s]].(*Exec); op {
				attrs := "constraint=false, weight=0"
				if read[s]-made[s] > farRows {
					if len(d.pr.Instrs) > manyRows {
						made[s], read[s] = -1, -1
						return // the label says till when
					}
					attrs += ", tailport=e, headport=e"
				}
				d.edge(made[s], read[s], attrs)
			}
		}
		made[s], read[s] = -1, -1
	}
	for pc, i := range d.pr.Instrs {
		switch x := i.(type) {
		case *Exec:
			for _, r := range x.In {
				s := d.p.Buffers[r.Buffer].Holds
				if s < 0 {
					continue
				}
				if m := made[s]; m >= 0 && read[s] < 0 {
					if c, ok := d.pr.Instrs[m].(*Copy); ok && c.Kind == CopySwapIn {
						d.edge(m, pc, `color="#1a9a1a", style="bold,dashed", constraint=false, weight=0`)
					}
				}
				read[s] = pc
			}
			for _, r := range x.Out {
				s := d.p.Buffers[r.Buffer].Holds
				if s < 0 {
					continue
				}
				kept(s)
				made[s] = pc
				if x.Recompute && d.first[s] >= 0 && int(d.first[s]) != pc {
					d.edge(int(d.first[s]), pc, fmt.Sprintf(`color="#e07b00", fontcolor="#b05f00", style=dashed, penwidth=1.4, constraint=false, weight=0, tailport=e, headport=e, labeldistance=5, labelangle=9, headlabel=%s`,
						quote("recompute "+FormatBytes(r.Type.Bytes()))))
				}
			}
		case *Copy:
			s := d.p.Buffers[x.Src.Buffer].Holds
			if s < 0 {
				continue
			}
			size := quote(FormatBytes(x.Src.Type.Bytes()))
			switch x.Kind {
			case CopySwapOut:
				if made[s] >= 0 {
					d.edge(made[s], pc, `color="#1f5fd0", fontcolor="#1f5fd0", style=bold, constraint=false, weight=0, xlabel=`+size)
				}
				left[s] = pc
			case CopySwapIn:
				kept(s)
				if left[s] >= 0 {
					d.edge(left[s], pc, `color="#1a9a1a", fontcolor="#137013", style=dotted, penwidth=1.6, constraint=false, weight=0, labeldistance=5, labelangle=9, headlabel=`+size)
				}
				made[s] = pc
			}
		}
	}
	for s := range made {
		kept(SymbolID(s))
	}
}

// edge draws from instruction to instruction. Labels stand at the head or outside: one in the middle of an edge doubles the rows in Graphviz's eyes,
// which makes it ten times slower.
func (d *drawing) edge(from, to int, attrs string) {
	if from != to {
		fmt.Fprintf(d.w, "  i%d -> i%d [%s];\n", from, to, attrs)
	}
}
