package passes

import (
	"aitk/ir"
	"aitk/ir/op"
)

// keepOnce makes again in the backward half what only repeats another value that is kept for it: in another layout, another type, stretched, cut.
//
//	%3, %4 = Attention %0 %1 %2                        %3, %4 = Attention %0 %1 %2
//	%5 = Transpose{perm=[0,2,1,3]} %3                  %5 = Transpose{perm=[0,2,1,3]} %3
//	%6 = MatMul %5 %w                           ->     %6 = MatMul %5 %w
//	...                                                ...
//	%9 =b MatMul{transA=true} %5 %8                    %10 =b Transpose{perm=[0,2,1,3]} %3
//	%11 =b AttentionGrad %0 %1 %2 %3 %4 ...            %9 =b MatMul{transA=true} %10 %8
//
// Without it both %3 and %5 live from the one half to the other. The work is one pass over memory and buys the bytes of a whole activation, so it
// is done in every plan, and by the graph: the memory pass decides about what costs more.
//
//   - What moves, cuts, stretches or casts (Transpose, Slice, Expand, Concat, Cast) is made again where its operands are kept anyway, or where its one
//     operand is smaller and is kept in its place.
//   - A norm without a scale of its own (a Fill) whose operand is kept or is moved from what is, and whose result is read only to be multiplied: this is the first half of
//     a group norm or of a modulated norm, and one op with the product would not keep it either.
//   - Generators need no operand.
//
// Why after late-cse: cse would merge the two again.
func keepOnce() Pass {
	return Pass{
		Name:      "keep-once",
		Doc:       "make again in the backward half what only repeats another kept value in other layout or type",
		Takes:     Scheduled | WithinBudget | Placed,
		Preserves: Bits,
		Each:      true,
		Run: func(ctx *Context, g *ir.Graph) error {
			k := newKeeper(g)
			k.decide()
			k.write()
			ctx.Count("nodes made again", k.made)
			ctx.Count("bytes not kept", k.bytes)
			return nil
		},
	}
}

// keptTwiceFloor: what is smaller is not worth a node.
const keptTwiceFloor = 4096

// keptTwiceNodes: between the last reader of the forward half and the first of the backward half stand at least so many nodes. The loss and its
// gradient stand side by side, and nothing is won between them.
const keptTwiceNodes = 8

// repeatDepth bounds the chain of nodes between a kept value and what is made from it.
const repeatDepth = 4

// keeper carries keepOnce. All slices but the last two are by storage.
type keeper struct {
	g       *ir.Graph
	s       *Storages
	def     []*ir.Node   // that makes it in the forward half; nil: an input, a parameter, a constant, or made later
	readers [][]*ir.Node // of the backward half and later, views left out
	idle    []int        // nodes between the last reader of the forward half, or the maker, and the first of the backward half
	stays   []bool       // alive in the backward half whatever is done here
	again   []bool       // made again there
	copies  map[ir.ID]*ir.Value
	out     []*ir.Node
	made    int64
	bytes   int64
}

func newKeeper(g *ir.Graph) *keeper {
	s := StoragesOf(g)
	k := &keeper{g: g, s: s, def: make([]*ir.Node, len(s.All)), readers: make([][]*ir.Node, len(s.All)), idle: make([]int, len(s.All)), stays: make([]bool, len(s.All)),
		again: make([]bool, len(s.All)), copies: map[ir.ID]*ir.Value{}}
	for i := range s.All {
		if d := s.All[i].Root.Def; d != nil && d.Phase == ir.Forward && len(d.Out) == 1 && s.All[i].Space == ir.Device {
			k.def[i] = d
		}
		k.stays[i] = s.All[i].Kind == ConstStorage
	}
	last := make([]int, len(s.All))
	for t, n := range g.Nodes {
		if ir.ViewOf(n) != nil {
			continue
		}
		for _, v := range n.In {
			at := s.Of[v.ID]
			if n.Phase == ir.Forward {
				last[at] = t
				continue
			}
			if len(k.readers[at]) == 0 {
				k.idle[at] = t - last[at]
			}
			k.readers[at] = append(k.readers[at], n)
		}
		for _, v := range n.Out {
			last[s.Of[v.ID]] = t
		}
	}
	for id, kept := range g.Kept() {
		if kept {
			k.stays[s.Of[id]] = true
		}
	}
	return k
}

// decide marks what is made again, operands before those who read them.
func (k *keeper) decide() {
	for i := range k.s.All {
		at := int32(i)
		d := k.def[at]
		if d == nil || k.stays[at] || len(k.readers[at]) == 0 || k.idle[at] < keptTwiceNodes || k.s.All[at].Bytes < keptTwiceFloor {
			continue
		}
		switch {
		case k.repeats(d) || k.unscaled(at):
			k.again[at] = true
		case moves(d.Op) && k.smaller(d, at):
			k.again[at] = true
			from := k.s.Of[d.In[0].ID]
			if !k.stays[from] {
				k.bytes -= k.s.All[from].Bytes
			}
			k.stays[from] = true
		}
		if k.again[at] {
			k.bytes += k.s.All[at].Bytes
		}
	}
}

// there tells whether a storage is alive in the backward half, or can be made there in at most depth nodes.
func (k *keeper) there(at int32, depth int) bool {
	if k.stays[at] || len(k.readers[at]) > 0 && !k.again[at] && k.s.All[at].Kind != ParamStorage {
		return true
	}
	d := k.def[at]
	return d != nil && depth > 0 && k.movesFrom(d, depth-1)
}

// repeats tells whether a node is a generator, or moves values that are there.
func (k *keeper) repeats(d *ir.Node) bool { return k.movesFrom(d, repeatDepth-1) }

func (k *keeper) movesFrom(d *ir.Node, depth int) bool {
	switch d.Op.(type) {
	case op.Fill, op.Iota, op.Transpose, op.Slice, op.Expand, op.Concat, op.Cast:
	default:
		return false
	}
	for _, v := range d.In {
		if !k.there(k.s.Of[v.ID], depth) {
			return false
		}
	}
	return true
}

// smaller tells whether a node's one operand takes fewer bytes and can be kept in its place. Of a parameter the backward half may not find the content
// of the forward half any more.
func (k *keeper) smaller(d *ir.Node, at int32) bool {
	from := k.s.Of[d.In[0].ID]
	x := &k.s.All[from]
	return len(d.In) == 1 && x.Kind != ParamStorage && x.Space == ir.Device && x.Bytes < k.s.All[at].Bytes
}

// unscaled tells whether a storage is a norm by a scale that is a Fill, of a value that is kept, and read only by products.
func (k *keeper) unscaled(at int32) bool {
	d := k.def[at]
	switch d.Op.(type) {
	case op.LayerNorm, op.RMSNorm:
	default:
		return false
	}
	if len(d.In) != 2 || defBy[op.Fill](d.In[1]) == nil {
		return false
	}
	if !k.there(k.s.Of[d.In[0].ID], repeatDepth) {
		return false
	}
	for _, n := range k.readers[at] {
		if _, ok := n.Op.(op.Mul); !ok {
			return false
		}
	}
	return true
}

// write puts the copies in front of their first reader.
func (k *keeper) write() {
	nodes := k.g.Nodes
	k.out = make([]*ir.Node, 0, len(nodes))
	for _, n := range nodes {
		if n.Phase != ir.Forward {
			for i, v := range n.In {
				n.In[i] = k.now(v, n.Phase)
			}
		}
		k.out = append(k.out, n)
	}
	k.g.Nodes = k.out
}

// now is what stands for v in the backward half: v itself, or what makes it again.
func (k *keeper) now(v *ir.Value, phase ir.Phase) *ir.Value {
	if int(v.ID) >= len(k.s.Of) || !k.absent(v) {
		return v
	}
	if w := k.copies[v.ID]; w != nil {
		return w
	}
	in := make([]*ir.Value, len(v.Def.In))
	for i, x := range v.Def.In {
		in[i] = k.now(x, phase)
	}
	m, err := k.g.NewNode(v.Def.Op, in...)
	if err != nil {
		panic(ir.Bugf("keep-once: %v", err))
	}
	m.Phase, m.Origin = phase, v.Def.Origin
	m.Out[0].Name = v.Name
	k.out = append(k.out, m)
	k.copies[v.ID] = m.Out[0]
	k.made++
	return m.Out[0]
}

// absent tells whether v is not alive in the backward half: made again there, or on the way to what is.
func (k *keeper) absent(v *ir.Value) bool {
	at := k.s.Of[v.ID]
	d := k.def[at]
	if d == nil || k.stays[at] || v.Def.Phase != ir.Forward {
		return false
	}
	return k.again[at] || len(k.readers[at]) == 0
}
