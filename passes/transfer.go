package passes

import (
	"aitk/ir"
	"aitk/ir/plan"
)

// The programs init and save move parameters between storage and their homes: in one copy where the host can address the home, else in
// pieces through two staging buffers in the pinned arena, so that reading a file and copying to the device overlap.
//
//	0  read  storage[0,8M) -> staging 0
//	2  h2d   staging 0 -> w[0,8M)         1 waits for 0
//	3  read  storage[8M,16M) -> staging 1  beside 2
//	5  h2d   staging 1 -> w[8M,16M)       4 waits for 3
//	7  read  storage[16M,24M) -> staging 0  6 waits for 2

// init loads every parameter. Nothing lies in memory before.
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

// save stores every parameter that some program changes. All lie in memory before and after.
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

// transfer is the lowering of init or save.
type transfer struct {
	*lowering
	name    string
	at      int32 // number of the program
	h       *hazards
	turn    int     // staging buffer to use next
	started []int32 // by placement param: its first instruction, in init
	staged  []stay
}

// stay is one piece of a parameter in a staging buffer, during the instructions [first, end).
type stay struct {
	buffer     plan.BufferID
	first, end int32
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
		t.staged = append(t.staged, stay{stage, first, int32(len(t.h.instrs))})
	}
}

// slice is n bytes of a reference from offset on.
func slice(r plan.Ref, offset, n int64) plan.Ref {
	if offset == 0 && n == r.Type.Bytes() {
		return r
	}
	return plan.Ref{Buffer: r.Buffer, Offset: r.Offset + offset, Type: ir.Type{DType: ir.U8, Shape: ir.Shape{n}, Space: r.Type.Space}}
}

// finish closes the program. resident tells whether parameters lie in memory when it starts: not in init, where each lives from its first copy
// on, and which runs once; in save all of them lie still.
func (t *transfer) finish(resident bool) {
	t.h.join()
	moved := int32(0)
	if resident {
		moved = t.h.cycle()
	}
	end := int32(len(t.h.instrs))
	prog := plan.Program{Name: t.name, Instrs: t.h.instrs, Repeat: resident}
	for i := range t.params {
		r := plan.Residency{Param: t.index[i], Buffer: t.homes[i]}
		if resident {
			prog.Entry = append(prog.Entry, r)
		}
		prog.Exit = append(prog.Exit, r)
		start := int32(0)
		if !resident {
			start = t.started[i]
		}
		t.liveIn(t.homes[i], t.at, start, end)
	}
	for _, p := range t.plan.Params {
		if !resident || p.Mutable {
			t.liveIn(p.Storage, t.at, 0, end)
		}
	}
	for _, s := range t.staged {
		t.liveIn(s.buffer, t.at, s.first+moved, s.end+moved)
	}
	t.plan.Programs = append(t.plan.Programs, prog)
}
