package runtime

import (
	"slices"

	"aitk/ir"
	"aitk/ir/plan"
)

// Fuser is a Device that can run neighbours of a lane as one kernel:
//
//	%3 = Dequantize %1 %2
//	%4 = MatMul{transB=true} %0 %3    ->    one kernel, which reads %0 %1 %2 %b and writes %6
//	%5 = Add %4 %b
//	%6 = Gelu %5
//
// Why here and not in the graph: such a kernel rounds where the ops do and so gives their bits. It saves traffic, and it changes neither a value that
// anybody sees nor the plan: what lies where, what is predicted, what is recomputed. Which neighbours a budget leaves together can therefore
// differ from plan to plan without the results doing so. (Rooms for the values between stay in the plan, unused.)
type Fuser interface {
	Device
	// Fuse resolves a chain of two or more. Each Exec but the last has one output, which the next one reads, whole and as it was written, and
	// nobody else ever does. The bits that it writes are those of the Execs one after the other. It answers nil, nil for a chain that it has
	// no kernel for; that includes outputs that lie over operands which the kernel still reads.
	Fuse(chain []Link) (Kernel, error)
}

// Link is an Exec with the places of its operands.
type Link struct {
	Exec    *plan.Exec
	In, Out []Slice
}

// maxChain is how many neighbours are offered at once.
const maxChain = 4

// fuse offers chains to the device, the longest first. The kernel of a chain runs in the place of its first Exec; since no wait of the lane stands between, all
// that the last one waits for has happened by then, and whoever waits for any of them waits for the kernel.
func (l *loader) fuse(out *program, in *plan.Program, index int32) {
	dev, ok := l.e.dev.(Fuser)
	if !ok || len(l.missing) > 0 || len(l.errs) > 0 {
		return
	}
	for pc := 0; pc < len(in.Instrs); pc++ {
		pcs := l.chain(in, index, pc)
		for ; len(pcs) > 1; pcs = pcs[:len(pcs)-1] {
			l.e.at(in.Name, pc)
			k, err := l.fused(dev, out, in, pcs)
			if err != nil {
				l.errs = append(l.errs, err)
				return
			}
			if k == nil {
				continue
			}
			last := &out.actions[pcs[len(pcs)-1]]
			for _, i := range pcs[:len(pcs)-1] {
				s := &out.actions[i]
				last.freed = append(last.freed, slices.DeleteFunc(s.freed, func(f Slice) bool { return slices.ContainsFunc(last.out, f.Overlaps) })...)
				s.freed = nil
			}
			for _, i := range pcs {
				out.actions[i].within = true
			}
			out.actions[pc].fused = k
			pc = pcs[len(pcs)-1]
			break
		}
	}
}

func (l *loader) fused(dev Fuser, out *program, in *plan.Program, pcs []int) (Kernel, error) {
	links := make([]Link, len(pcs))
	for i, pc := range pcs {
		x := in.Instrs[pc].(*plan.Exec)
		refs, err := l.refs(out, x.In)
		if err != nil {
			return nil, err
		}
		links[i] = Link{Exec: x, In: refs, Out: out.actions[pc].out}
	}
	return dev.Fuse(links)
}

// chain is where the longest chain that begins at an instruction has its members.
func (l *loader) chain(in *plan.Program, index int32, pc int) []int {
	x, ok := in.Instrs[pc].(*plan.Exec)
	if !ok {
		return nil
	}
	pcs := []int{pc}
	for len(pcs) < maxChain {
		next := l.next(in, index, x, pc)
		if next < 0 {
			break
		}
		pcs = append(pcs, next)
		x, pc = in.Instrs[next].(*plan.Exec), next
	}
	return pcs
}

// next is the Exec that follows x on its lane, if it alone reads what x makes; else -1.
func (l *loader) next(in *plan.Program, index int32, x *plan.Exec, pc int) int {
	if len(x.Out) != 1 || x.Out[0].Offset != 0 {
		return -1
	}
	made := x.Out[0]
	for next := pc + 1; next < len(in.Instrs); next++ {
		if plan.LaneOf(in.Instrs[next]) == x.Lane {
			y, ok := in.Instrs[next].(*plan.Exec)
			if !ok || !l.endsAt(in, index, made.Buffer, pc, next) {
				return -1
			}
			uses := 0
			for _, r := range y.In {
				if r.Buffer == made.Buffer {
					uses++
					if r.Offset != 0 || !r.Type.Equal(made.Type) {
						return -1
					}
				}
			}
			if uses != 1 {
				return -1
			}
			return next
		}
		if c, ok := in.Instrs[next].(*plan.Copy); ok && (c.Src.Buffer == made.Buffer || c.Dst.Buffer == made.Buffer) {
			return -1
		}
		if y, ok := in.Instrs[next].(*plan.Exec); ok && (reads(y, made.Buffer) || slices.ContainsFunc(y.Out, func(r plan.Ref) bool { return r.Buffer == made.Buffer })) {
			return -1
		}
	}
	return -1
}

// endsAt tells whether a buffer that is written at pc is dead once the instruction at next has read it.
func (l *loader) endsAt(in *plan.Program, index int32, b plan.BufferID, pc, next int) bool {
	if slices.ContainsFunc(in.Results, func(r plan.Port) bool { return r.Ref.Buffer == b }) || slices.ContainsFunc(in.Exit, func(r plan.Residency) bool { return r.Buffer == b }) {
		return false
	}
	for _, s := range l.e.plan.Buffers[b].Live {
		if s.Program == index && int(s.Start) <= pc && pc < int(s.End) {
			return int(s.End) <= next+1
		}
	}
	return false
}

// Overlaps tells whether two stretches share a byte.
func (s Slice) Overlaps(t Slice) bool {
	return s.Space == t.Space && s.Space != ir.Disk && s.Bytes > 0 && t.Bytes > 0 && s.Offset < t.Offset+t.Bytes && t.Offset < s.Offset+s.Bytes
}

// Fused is how many instructions of a program run as part of another one's kernel.
func (e *Executable) Fused(program string) int {
	p, err := e.program(program)
	if err != nil {
		return 0
	}
	n := 0
	for _, s := range p.actions {
		if s.within && s.fused == nil {
			n++
		}
	}
	return n
}
