// Package plan is the second IR: what to run, where each byte lives and when it moves. A Plan is made once by package passes (lower.go), is
// serialised canonically, is proved by plan/check and is executed by runtime; nothing else crosses from compile time to run time. The
// package knows no operation by name, no pass and no device.
//
// Meaning. A *symbol* is the content of one stored value: everything that views the same bytes, and every copy and recompute of them,
// carries the same symbol. A Buffer is a stretch of an arena that holds one symbol while it is live. An instruction reads and writes
// Refs; a read is right only if every byte of the Ref was last written as that part of the buffer's symbol and the write happened
// before. Programs run one at a time; between them the parameters lie where Entry and Exit say. Instructions of one lane run in
// order; lanes run side by side and are ordered by Waits alone. Before a different program starts, every lane has finished. Between two
// runs in a row of one Repeat program nothing but lane order and Waits with Back 1 is promised; the caller writes inputs and reads
// results while no instruction that touches them is under way.
//
// A buffer of category staging may hold any stretch of its symbol; every other buffer holds it from its first byte. Buffers of a space
// without an arena (disk: a region of its own for each parameter) share no bytes with any other. A parameter's storage holds its
// content while program init runs; later only if the parameter is not Mutable.
package plan

import (
	"strconv"

	"aitk/ir"
)

// BufferID indexes Plan.Buffers; SymbolID indexes Plan.Symbols.
type (
	BufferID int32
	SymbolID int32
)

// NoBuffer is the absent buffer.
const NoBuffer BufferID = -1

// NoSymbol is what scratch holds.
const NoSymbol SymbolID = -1

// Lane is one queue of work that runs in order.
type Lane uint8

// The lanes. A plan uses those that its device profile has; no loop may assume that these are all.
const (
	Compute Lane = iota
	H2D
	D2H
	Host
	Read  // storage -> memory
	Write // memory -> storage
	NumLanes
)

var laneNames = [NumLanes]string{"compute", "h2d", "d2h", "host", "read", "write"}

func (l Lane) String() string { return nameOf(laneNames[:], uint8(l)) }

// Category says what a buffer is for, in views.
type Category uint8

// The categories, named as memory profilers name them.
const (
	CatParameter Category = iota
	CatOptimizerState
	CatGradient
	CatActivation
	CatTemporary // backward values that are no parameter's gradient, scratch, constants made by the graph
	CatInput
	CatStatistic
	CatConstant
	CatStaging
	NumCategories
)

var categoryNames = [NumCategories]string{"parameter", "optimizer-state", "gradient", "activation", "temporary", "input", "statistic", "constant", "staging"}

func (c Category) String() string { return nameOf(categoryNames[:], uint8(c)) }

func nameOf(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return "unknown(" + strconv.Itoa(int(i)) + ")"
}

// Arena is one allocation in one space.
type Arena struct {
	Space       ir.Space
	Bytes       int64 // exactly what is allocated: the highest end of a buffer
	BudgetBytes int64 // what the user allowed; -1: no limit
	Align       int64 // every buffer offset is a multiple
}

// Symbol names the content of a stored value.
type Symbol struct {
	Name    string // of the value, for messages: parameter, exporter's tensor name, or %id
	Program int32  // program whose graph the value belongs to; -1: content of a parameter between programs
	Value   ir.ID  // value ID in that program's graph
	Bytes   int64
}

// Span is a stretch of one program's instructions, half-open, during which a buffer is live. It is empty only for an operand that the
// program's first instruction writes over.
type Span struct {
	Program    int32
	Start, End int32
}

// Buffer is bytes with a lifetime. Buffers whose bytes overlap are live at disjoint instructions. Where an op writes its output over an
// operand (ir.AliasPair), the operand's span ends at that instruction and the output's begins there: the read still counts, because an
// Exec reads before it writes.
type Buffer struct {
	Name     string
	Type     ir.Type // of the value as stored; its Space is the buffer's space
	Offset   int64
	Bytes    int64
	Live     []Span // sorted; several where a parameter leaves and comes back to the same place
	Holds    SymbolID
	Category Category
}

// Ref is an operand: a whole buffer or a stretch of it, read as Type.
type Ref struct {
	Buffer BufferID
	Offset int64 // in bytes, from the buffer's start
	Type   ir.Type
}

// Instr is one of *Exec, *Copy, *Wait and nothing else.
type Instr interface{ instr() }

// Exec runs a kernel.
type Exec struct {
	Lane      Lane
	Op        ir.Op
	In, Out   []Ref
	Scratch   BufferID // NoBuffer if none
	Picos     int64    // predicted duration
	Phase     ir.Phase
	Recompute bool
	Origin    ir.Origin
}

// CopyKind says why bytes move.
type CopyKind uint8

// The kinds of copies.
const (
	CopySwapOut CopyKind = iota
	CopySwapIn
	CopyLoad // init: storage to memory
	CopySave // save: memory to storage
	NumCopyKinds
)

var copyKindNames = [NumCopyKinds]string{"swap-out", "swap-in", "load", "save"}

func (k CopyKind) String() string { return nameOf(copyKindNames[:], uint8(k)) }

// Copy moves bytes between spaces; Dst and Src have equal sizes.
type Copy struct {
	Lane     Lane
	Dst, Src Ref
	Picos    int64
	Kind     CopyKind
}

// Wait holds Lane back until instruction On has finished: of this run of the program (Back 0) or of the run before (Back 1, nothing
// to wait for in the first run).
type Wait struct {
	Lane Lane
	On   int32
	Back int32
}

func (*Exec) instr() {}
func (*Copy) instr() {}
func (*Wait) instr() {}

// LaneOf tells on which lane an instruction stands.
func LaneOf(i Instr) Lane {
	switch i := i.(type) {
	case *Exec:
		return i.Lane
	case *Copy:
		return i.Lane
	case *Wait:
		return i.Lane
	}
	panic(ir.Bugf("unknown instruction %T", i))
}

// Residency says that a parameter's content, symbol Holds of buffer Buffer, lies there when a program starts or ends.
type Residency struct {
	Param  int32 // index into Plan.Params
	Buffer BufferID
}

// Port is an input or result of a program: the caller writes it before the run, or reads it after.
type Port struct {
	Name string
	Ref  Ref
}

// Program is one instruction list.
type Program struct {
	Name    string // init, step, update, eval, save
	Instrs  []Instr
	Inputs  []Port
	Results []Port
	Entry   []Residency // every parameter that lies in memory at the start; init has none
	Exit    []Residency // every parameter that lies in memory at the end
	Repeat  bool        // may follow itself: Exit lies where Entry lies
}

// Param is a persistent value: weights, optimizer state, statistics, accumulators, constants.
type Param struct {
	Name      string
	Type      ir.Type
	Role      ir.Role
	Constant  bool // a literal of the graph; Init is InitLiteral
	Trainable bool
	Mutable   bool // some program changes it
	Of        string
	Aliases   []string
	Init      ir.Init
	Storage   BufferID // its buffer in the disk space, source of load and target of save
}

// Plan is everything that a runtime needs, and what views show.
type Plan struct {
	Tool     string // version that made it
	Model    string // base name of the model file
	GraphSum string // hex SHA-256 of the training graph's text form
	Options  []Option
	Dims     []Dim
	Profile  Profile
	Arenas   []Arena // at most one per space
	Symbols  []Symbol
	Buffers  []Buffer
	Params   []Param
	Programs []Program
	Report   Report
}

// Option is a setting that shaped the plan, for inspection and for resuming: loss, optimizer, schedule, seed, dtype ... Sorted by Key.
type Option struct{ Key, Value string }

// Dim is a bound symbolic dimension.
type Dim struct {
	Name string
	Size int64
}

// Profile names the device that the plan was made for.
type Profile struct {
	Device string // cpu, cuda, null
	Name   string // profile name: cpu-generic, rtx-4090
	SHA256 string
}

// Program finds a program; nil if the plan has none of that name.
func (p *Plan) Program(name string) (*Program, int32) {
	for i := range p.Programs {
		if p.Programs[i].Name == name {
			return &p.Programs[i], int32(i)
		}
	}
	return nil, -1
}

// Arena finds the arena of a space; nil if the plan uses none.
func (p *Plan) Arena(s ir.Space) *Arena {
	for i := range p.Arenas {
		if p.Arenas[i].Space == s {
			return &p.Arenas[i]
		}
	}
	return nil
}

// Option returns a setting's value, "" if it is not recorded.
func (p *Plan) Option(key string) string {
	for _, o := range p.Options {
		if o.Key == key {
			return o.Value
		}
	}
	return ""
}
