package passes

import (
	"aitk/ir"
	"aitk/ir/plan"
)

// The programs init and save move parameters between storage and their homes: in one copy where the host can address the home, else in
// pieces through two staging buffers in the pinned arena, so that reading a file and copying to the device overlap.

// init loads every parameter.
func (l *lowering) init() {
	t := l.newTransfer("init")
	for i, q := range l.params {
		param := &l.plan.Params[l.index[i]]
		stored := plan.Ref{Buffer: param.Storage, Type: l.plan.Buffers[param.Storage].Type}
		home := plan.Ref{Buffer: l.homes[i], Type: q.Type}
		t.started[i] = int32(len(t.h.instrs))
		t.pieces(home, func(piece, stage plan.Ref, offset int64) {
			from := slice(stored, offset, piece.Type.Bytes())
			if stage.Buffer == plan.NoBuffer {
				t.copy(&plan.Copy{Lane: plan.Read, Dst: piece, Src: from, Picos: l.prof.StoragePicos(piece.Type.Bytes()), Kind: plan.CopyLoad})
				return
			}
			t.copy(&plan.Copy{Lane: plan.Read, Dst: stage, Src: from, Picos: l.prof.StoragePicos(piece.Type.Bytes()), Kind: plan.CopyLoad})
			t.copy(&plan.Copy{Lane: plan.H2D, Dst: piece, Src: stage, Picos: l.prof.H2DPicos(piece.Type.Bytes()), Kind: plan.CopyLoad})
		})
	}
	t.finish(false)
}

// save stores every parameter that some program changes.
func (l *lowering) save() {
	t := l.newTransfer("save")
	for i, q := range l.params {
		param := &l.plan.Params[l.index[i]]
		if !param.Mutable || q.Role == ir.Shadow {
			continue
		}
		stored := plan.Ref{Buffer: param.Storage, Type: l.plan.Buffers[param.Storage].Type}
		home := plan.Ref{Buffer: l.homes[i], Type: q.Type}
		t.pieces(home, func(piece, stage plan.Ref, offset int64) {
			to := slice(stored, offset, piece.Type.Bytes())
			if stage.Buffer == plan.NoBuffer {
				t.copy(&plan.Copy{Lane: plan.Write, Dst: to, Src: piece, Picos: l.prof.StoragePicos(piece.Type.Bytes()), Kind: plan.CopySave})
				return
			}
			t.copy(&plan.Copy{Lane: plan.D2H, Dst: stage, Src: piece, Picos: l.prof.D2HPicos(piece.Type.Bytes()), Kind: plan.CopySave})
			t.copy(&plan.Copy{Lane: plan.Write, Dst: to, Src: stage, Picos: l.prof.StoragePicos(piece.Type.Bytes()), Kind: plan.CopySave})
		})
	}
	t.finish(true)
}

type transfer struct {
	*lowering
	name    string
	at      int32
	h       *hazards
	turn    int        // staging buffer to use next
	started []int32    // by parameter: its first instruction
	staged  [][3]int32 // buffer, first and last instruction of each piece's stay in staging
}

func (l *lowering) newTransfer(name string) *transfer {
	return &transfer{lowering: l, name: name, at: int32(len(l.plan.Programs)), h: newHazards(), started: make([]int32, len(l.params))}
}

func (t *transfer) copy(c *plan.Copy) {
	t.h.emit(c, []access{t.touch(c.Src, false), t.touch(c.Dst, true)})
}

// pieces calls f for each piece of home with its staging stretch, which has no buffer where none is needed.
func (t *transfer) pieces(home plan.Ref, f func(piece, stage plan.Ref, offset int64)) {
	total := home.Type.Bytes()
	if home.Type.Space != ir.Device || t.prof.HostAddressable {
		f(home, plan.Ref{Buffer: plan.NoBuffer}, 0)
		return
	}
	for offset := int64(0); offset < total; offset += stagingLimit {
		n := min(stagingLimit, total-offset)
		seat := t.staging[t.turn]
		t.turn = 1 - t.turn
		b := t.plan.Buffers[home.Buffer]
		stage := t.buffer(plan.Buffer{Name: "staging of " + b.Name, Type: ir.Type{DType: ir.U8, Shape: ir.Shape{n}, Space: ir.Pinned},
			Offset: t.seats[seat].offset, Bytes: n, Holds: b.Holds, Category: plan.CatStaging})
		first := int32(len(t.h.instrs))
		f(slice(home, offset, n), plan.Ref{Buffer: stage, Type: t.plan.Buffers[stage].Type}, offset)
		t.staged = append(t.staged, [3]int32{int32(stage), first, int32(len(t.h.instrs))})
	}
}

// slice is n bytes of a reference from offset on.
func slice(r plan.Ref, offset, n int64) plan.Ref {
	if offset == 0 && n == r.Type.Bytes() {
		return r
	}
	return plan.Ref{Buffer: r.Buffer, Offset: r.Offset + offset, Type: ir.Type{DType: ir.U8, Shape: ir.Shape{n}, Space: r.Type.Space}}
}

// finish closes the program. In init a parameter lives from its first copy on; in save all of them lie still.
func (t *transfer) finish(entry bool) {
	t.h.join()
	moved := int32(0)
	if entry {
		moved = t.h.cycle()
	}
	end := int32(len(t.h.instrs))
	prog := plan.Program{Name: t.name, Instrs: t.h.instrs, Repeat: entry}
	for i := range t.params {
		r := plan.Residency{Param: t.index[i], Buffer: t.homes[i]}
		if entry {
			prog.Entry = append(prog.Entry, r)
		}
		prog.Exit = append(prog.Exit, r)
		start := int32(0)
		if !entry {
			start = t.started[i]
		}
		t.liveIn(t.homes[i], t.at, start, end)
	}
	for _, p := range t.plan.Params {
		if !entry || p.Mutable {
			t.liveIn(p.Storage, t.at, 0, end)
		}
	}
	for _, s := range t.staged {
		t.liveIn(plan.BufferID(s[0]), t.at, s[1]+moved, s[2]+moved)
	}
	t.plan.Programs = append(t.plan.Programs, prog)
}
