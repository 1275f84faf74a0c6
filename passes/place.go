package passes

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"aitk/ir"
	"aitk/passes/cost"
	"aitk/passes/pack"
)

// placement gives every storage of every program a byte offset.
//
// A *seat* is a stretch of an arena that storages take in turn: a storage and what is written over it in place, or a parameter, its residences
// and its new content. Seats are what is packed: two that are taken at different times may share bytes.
//
// Time is counted in *moments*: the nodes of all programs (views left out) end to end. A program of n nodes has the moments 0..n, the last one
// for what lies there when it ends. Two more moments in front, for init and save, hold the parameters and the staging buffers. A parameter
// that a program does not touch lies still all through it.
//
//	moment   0     1     2                  3             4               5
//	         init  save  %2 = MatMul %0 %1  %3 = Relu %2  %4 = SGD %1 %3  end
//	seat 0   w     w     w                  w             w, w' over it   w'      the home of w, which is %1, and of its new content %4
//	seat 1               %2                 %2, %3 over   %3
type placement struct {
	programs []*seated
	params   []param
	seats    []seat
	staging  []int32 // seats of the staging buffers, where the host cannot address the device
	arenas   [ir.NumSpaces]pack.Result
}

// seated is one program with its seats.
type seated struct {
	g       *ir.Graph
	nodes   []*ir.Node // without views, which run nothing
	live    *Liveness  // of nodes
	first   int64      // its first moment, counted over all programs
	reader  []int32    // by storage: last node that reads it; -1: none
	handed  []int32    // by storage: node that writes over it in place; -1: none
	seat    []int32    // by storage
	scratch []int32    // by node: seat of its scratch; -1: it has none
}

type seat struct {
	space  ir.Space
	bytes  int64
	offset int64
	live   []pack.Span // when it is taken, in moments; sorted, disjoint and not touching once collectSpans is through
}

// param is a parameter of the plan: the union over programs, by name.
type param struct {
	*ir.Param
	home int32       // seat
	in   []*ir.Param // by program; nil where the program does not know it
}

// stagingLimit bounds each of the two buffers through which init and save move parameters that the host cannot address.
const stagingLimit = 8 << 20

// place works out seats and offsets of scheduled programs whose memory decisions are written into them.
func place(programs []*ir.Graph, prof *cost.Profile) (*placement, error) {
	p := &placement{}
	at := int64(2) // moments 0 and 1 are init and save
	for _, g := range programs {
		s := &seated{g: g, first: at}
		for _, n := range g.Nodes {
			if ir.ViewOf(n) == nil {
				s.nodes = append(s.nodes, n)
			}
		}
		s.live = Live(g, nil, s.nodes)
		s.reader = s.live.lastReaders()
		p.programs = append(p.programs, s)
		at += int64(len(s.nodes)) + 1
	}
	p.collectParams()
	for k := range p.programs {
		p.seatStorages(k)
		p.seatScratch(k, prof)
	}
	p.collectSpans()
	p.seatStaging(prof)
	return p, p.pack(prof)
}

func (p *placement) newSeat(space ir.Space, bytes int64) int32 {
	p.seats = append(p.seats, seat{space: space, bytes: bytes})
	return int32(len(p.seats) - 1)
}

func (p *placement) collectParams() {
	byName := map[string]int{}
	for k, s := range p.programs {
		for _, q := range s.g.Params {
			i, ok := byName[q.Name]
			if !ok {
				i = len(p.params)
				byName[q.Name] = i
				p.params = append(p.params, param{Param: q, in: make([]*ir.Param, len(p.programs)), home: p.newSeat(q.Type.Space, q.Type.Bytes())})
			}
			if !q.Type.Equal(p.params[i].Type) {
				panic(ir.Bugf("parameter %q is %v in one program and %v in another", q.Name, p.params[i].Type, q.Type))
			}
			p.params[i].in[k] = q
		}
	}
}

// seatStorages seats the storages of program k: parameters and their new contents at home; what an op writes over takes the operand's seat;
// the rest gets seats of its own.
func (p *placement) seatStorages(k int) {
	s := p.programs[k]
	st := s.live.Storages
	s.seat, s.handed = filled(len(st.All)), filled(len(st.All))
	owner := filled(len(st.All)) // parameter storage at whose home the storage ends up
	for _, q := range p.params {
		if v := q.in[k]; v != nil {
			s.seat[st.Of[v.ID]] = q.home
			if v.Next != nil {
				next := st.Of[v.Next.ID]
				s.seat[next], owner[next] = q.home, st.Of[v.ID]
			}
		}
	}
	// A residence over which a new content is written goes home too, if the old content is gone by then.
	for i := len(s.live.Over) - 1; i >= 0; i-- {
		for _, h := range s.live.Over[i] {
			if q := owner[h.Out]; q >= 0 && s.seat[h.In] < 0 && s.reader[q] < s.live.Def[h.In] {
				s.seat[h.In], owner[h.In] = s.seat[h.Out], q
			}
		}
	}
	for i, x := range st.All {
		if x.Kind == InputStorage {
			s.seat[i] = p.newSeat(x.Space, x.Bytes)
		}
	}
	for i, n := range s.nodes {
		for _, h := range s.live.Over[i] {
			if s.seat[h.Out] < 0 && owner[h.In] < 0 {
				s.seat[h.Out] = s.seat[h.In]
			}
			if s.seat[h.Out] == s.seat[h.In] {
				s.handed[h.In] = int32(i)
			}
		}
		for _, v := range n.Out {
			if at := st.Of[v.ID]; s.seat[at] < 0 {
				s.seat[at] = p.newSeat(st.All[at].Space, st.All[at].Bytes)
			}
		}
	}
}

// filled is n times -1.
func filled(n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = -1
	}
	return s
}

func (p *placement) seatScratch(k int, prof *cost.Profile) {
	s := p.programs[k]
	s.scratch = filled(len(s.nodes))
	for i, n := range s.nodes {
		if b := prof.ScratchBytes(n.Op, types(n.In), types(n.Out)); b > 0 {
			s.scratch[i] = p.newSeat(ir.Device, b)
			p.seats[s.scratch[i]].live = []pack.Span{{Start: s.first + int64(i), End: s.first + int64(i) + 1}}
		}
	}
}

// span is when storage i holds its seat, in moments of the program. The old content of a parameter leaves its home behind its last reader;
// that nothing reads it later is what keepOld and the solver see to.
func (s *seated) span(i int32) (start, end int32) {
	n := int32(len(s.nodes))
	x := &s.live.Storages.All[i]
	start = max(s.live.Def[i], 0)
	switch {
	case s.handed[i] >= 0:
		return start, s.handed[i]
	case x.Kind == ParamStorage && x.Param.Next != nil && s.live.Storages.Of[x.Param.Next.ID] != i && !s.result(i):
		return start, max(s.reader[i], 0) + 1
	case s.live.Last[i] >= n:
		return start, n + 1
	}
	return start, max(s.live.Last[i], start) + 1
}

func (s *seated) result(i int32) bool {
	return slices.ContainsFunc(s.g.Results, func(r ir.Result) bool { return s.live.Storages.Of[r.Value.ID] == i })
}

// collectSpans gathers when each seat is taken. A seat that two storages take at once is a bug of a pass before.
func (p *placement) collectSpans() {
	for _, s := range p.programs {
		for i := range s.live.Storages.All {
			if a, e := s.span(int32(i)); a < e {
				t := &p.seats[s.seat[i]]
				t.live = append(t.live, pack.Span{Start: s.first + int64(a), End: s.first + int64(e)})
			}
		}
	}
	for _, q := range p.params {
		t := &p.seats[q.home]
		t.live = append(t.live, pack.Span{Start: 0, End: 2})
		for k, s := range p.programs {
			if q.in[k] == nil {
				t.live = append(t.live, pack.Span{Start: s.first, End: s.first + int64(len(s.nodes)) + 1})
			}
		}
	}
	for i := range p.seats {
		t := &p.seats[i]
		slices.SortFunc(t.live, func(a, b pack.Span) int { return cmp.Compare(a.Start, b.Start) })
		merged := t.live[:0]
		for _, sp := range t.live {
			switch n := len(merged); {
			case n > 0 && merged[n-1].End > sp.Start && t.bytes == 0: // whoever holds no byte is in nobody's way
				merged[n-1].End = max(merged[n-1].End, sp.End)
			case n > 0 && merged[n-1].End > sp.Start:
				panic(ir.Bugf("%s takes its seat at moment %d before it is free", p.seatName(int32(i)), sp.Start))
			case n > 0 && merged[n-1].End == sp.Start:
				merged[n-1].End = sp.End
			default:
				merged = append(merged, sp)
			}
		}
		t.live = merged
	}
}

func (p *placement) seatName(i int32) string {
	for _, q := range p.params {
		if q.home == i {
			return "the new content of parameter " + q.Name
		}
	}
	return "a storage"
}

// seatStaging seats the two buffers of init and save, no larger than what goes through them, where the host cannot address the device.
func (p *placement) seatStaging(prof *cost.Profile) {
	if prof.HostAddressable {
		return
	}
	largest := int64(0)
	for _, q := range p.params {
		if q.Type.Space == ir.Device {
			largest = max(largest, q.Type.Bytes())
		}
	}
	for range 2 {
		i := p.newSeat(ir.Pinned, min(largest, stagingLimit))
		p.seats[i].live = []pack.Span{{Start: 0, End: 2}}
		p.staging = append(p.staging, i)
	}
}

// pack finds the offsets, arena by arena.
func (p *placement) pack(prof *cost.Profile) error {
	for space := range ir.NumSpaces {
		var which []int
		var buffers []pack.Buffer
		for i, t := range p.seats {
			if t.space == space && len(t.live) > 0 {
				which = append(which, i)
				buffers = append(buffers, pack.Buffer{Bytes: t.bytes, Align: prof.AlignBytes, Spans: t.live})
			}
		}
		r, err := packArena(buffers)
		if err != nil {
			return tooManyBytes(space, err)
		}
		for j, i := range which {
			p.seats[i].offset = r.Offsets[j]
		}
		p.arenas[space] = r
	}
	return nil
}

// tooManyBytes is the first of what is wrong with buffers of ours, which can be their sizes only: some dimension was bound to a size that nobody can mean.
func tooManyBytes(space ir.Space, err error) error {
	if all, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		err = all.Unwrap()[0]
	}
	return &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("the step's tensors in %v memory take more bytes together than can be placed: %w", space, err),
		Remedy: "bind smaller dimensions (--dim), the batch above all"}
}

// What is spent on one placement where the quick orders leave a gap: one is made for each candidate. Thousands of buffers are left at a thousandth
// above the bound, as the search takes the longer the less there is to win, and they get fewer nodes by the square, since a node goes through all of them.
const (
	packTries   = 60
	packNodes   = 10_000
	manyBuffers = 1000
	enough      = 1000
)

// packArena finds the offsets of one arena.
func packArena(buffers []pack.Buffer) (pack.Result, error) {
	o := pack.Options{Tries: packTries, Nodes: packNodes}
	if len(buffers) > manyBuffers {
		o.Enough = enough
		o.Nodes = packNodes * manyBuffers / int64(len(buffers)) * manyBuffers / int64(len(buffers))
	}
	return pack.Pack(buffers, o)
}
