package ir

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The text form. One statement a line; # begins a comment.
//
//	graph @mlp file=mlp.onnx
//	  %0 = input "x" : f32[32,784]
//	  %1 = param "fc1.weight" trainable weight : f32[128,784] init=file("w.bin",offset=0,bytes=401408)
//	  %2 = const : f32[] [0.5]
//	  %3 "h" = MatMul{transB=true} %0 %1 : f32[32,128]  ; fc1/Gemm op=Gemm index=3 opset=17
//	  %4 =b SwapOut{to=pinned} %3 : pinned f32[32,128]
//	  %5 =r MatMul{transB=true} %0 %1 : f32[32,128]  ; recompute of %3
//	  update %1 %9
//	  result "loss" %7
//
// The letter on the equals sign is the phase: none forward, b backward, u update; r is a recompute in the backward half, rf and ru one
// elsewhere. The quoted word after a value's number is its name. After the semicolon stands the origin, of which node name and scope may be
// any text; file= is left out where it is the graph's. Types of nodes may be left out in text written by hand: they are inferred.

// phaseLetters stand on the equals sign, indexed by Phase; a recompute has r before them, and none for Backward.
var phaseLetters = [NumPhases]string{Forward: "", Backward: "b", Update: "u"}
var copyLetters = [NumPhases]string{Forward: "rf", Backward: "r", Update: "ru"}

// String is the text form, which Parse reads back. It shows IDs as they are.
func (g *Graph) String() string {
	var b strings.Builder
	_ = Print(&b, g) // a strings.Builder does not fail
	return b.String()
}

// Print writes the text form. It prints broken graphs too, so that they can be looked at.
func Print(w io.Writer, g *Graph) error {
	p := printer{w: w}
	for _, n := range g.Nodes {
		if n != nil && n.Origin.File != "" {
			p.file = n.Origin.File
			break
		}
	}
	return p.graph(g)
}

type printer struct {
	w      io.Writer
	b      strings.Builder // the line
	err    error
	file   string
	number func(*Value) ID // nil: the value's own
	bare   bool            // without file names and remarks: the form that Hash reads
}

func (p *printer) graph(g *Graph) error {
	p.b.WriteString("graph @" + atom(g.Name))
	if p.file != "" && !p.bare {
		p.b.WriteString(" file=" + atom(p.file))
	}
	p.flush()
	for _, v := range g.Inputs {
		p.b.WriteString("  ")
		p.value(v)
		fmt.Fprintf(&p.b, " = input %q : %v", v.Name, v.Type)
		p.flush()
	}
	for _, x := range g.Params {
		p.param(x)
	}
	for _, c := range g.Consts {
		p.b.WriteString("  ")
		p.defined(c.Value)
		fmt.Fprintf(&p.b, " = const : %v %s", c.Type, formatLiteral(c.Type, c.Data))
		p.flush()
	}
	for _, n := range g.Nodes {
		p.b.WriteString("  ")
		p.node(n)
		p.flush()
	}
	for _, x := range g.Params {
		if x.Next != nil {
			p.b.WriteString("  update ")
			p.value(x.Value)
			p.b.WriteByte(' ')
			p.value(x.Next)
			p.flush()
		}
	}
	for _, r := range g.Results {
		fmt.Fprintf(&p.b, "  result %q ", r.Name)
		p.value(r.Value)
		p.flush()
	}
	return p.err
}

func (p *printer) flush() {
	p.b.WriteByte('\n')
	if p.err == nil {
		_, p.err = io.WriteString(p.w, p.b.String())
	}
	p.b.Reset()
}

func (p *printer) value(v *Value) {
	switch {
	case v == nil:
		p.b.WriteString("%?")
	case p.number != nil:
		p.b.WriteString("%" + strconv.Itoa(int(p.number(v))))
	default:
		p.b.WriteString("%" + strconv.Itoa(int(v.ID)))
	}
}

// defined is a value with its name, left of the equals sign.
func (p *printer) defined(v *Value) {
	p.value(v)
	if v != nil && v.Name != "" {
		p.b.WriteString(" " + strconv.Quote(v.Name))
	}
}

func (p *printer) param(x *Param) {
	p.b.WriteString("  ")
	p.value(x.Value)
	fmt.Fprintf(&p.b, " = param %q ", x.Name)
	switch {
	case x.Trainable:
		p.b.WriteString("trainable ")
	case x.Role == Weight:
		p.b.WriteString("frozen ")
	}
	if x.Role < NumRoles {
		p.b.WriteString(x.Role.String())
	} else {
		fmt.Fprintf(&p.b, "role(%d)", x.Role)
	}
	fmt.Fprintf(&p.b, " : %v", x.Type)
	p.pack(&x.Init)
	p.init(x)
	if x.Of != "" {
		fmt.Fprintf(&p.b, " of=%q", x.Of)
	}
	for i, a := range x.Aliases {
		if i == 0 {
			p.b.WriteString(" aliases=[")
		} else {
			p.b.WriteByte(',')
		}
		p.b.WriteString(strconv.Quote(a))
		if i == len(x.Aliases)-1 {
			p.b.WriteByte(']')
		}
	}
	if x.Reason != "" && !p.bare {
		fmt.Fprintf(&p.b, " reason=%q", x.Reason)
	}
	p.flush()
}

func (p *printer) init(x *Param) {
	switch in := &x.Init; in.Kind {
	case InitZero:
	case InitFill:
		p.b.WriteString(" init=fill(" + formatFloat(in.Fill, 64) + ")")
	case InitFile:
		p.b.WriteString(" init=file(")
		// Where the digest is known it is the identity of the content; until then the place in the file has to do.
		if !p.bare {
			p.b.WriteString(strconv.Quote(in.File.Path) + ",")
		}
		if !p.bare || in.File.SHA256 == "" {
			fmt.Fprintf(&p.b, "offset=%d,", in.File.Offset)
		}
		fmt.Fprintf(&p.b, "bytes=%d", in.File.Bytes)
		if in.File.Transposed {
			p.b.WriteString(",transposed")
		}
		if in.File.SHA256 != "" {
			p.b.WriteString(",sha256=" + atom(in.File.SHA256))
		}
		p.b.WriteByte(')')
	case InitLiteral:
		p.b.WriteString(" init=" + formatLiteral(in.Described(x.Type), in.Literal))
	case InitAbsent:
		p.b.WriteString(" init=absent")
	case InitUniform:
		p.b.WriteString(" init=uniform(" + formatFloat(in.Fill, 64) + "," + strconv.FormatUint(in.Seed, 10) + ")")
	default:
		fmt.Fprintf(&p.b, " init=kind(%d)", in.Kind)
	}
}

func (p *printer) node(n *Node) {
	if n == nil {
		p.b.WriteString("= ?")
		return
	}
	for _, v := range n.Out {
		p.defined(v)
		p.b.WriteByte(' ')
	}
	p.b.WriteByte('=')
	switch {
	case n.Phase >= NumPhases:
		p.b.WriteByte('?')
	case n.CopyOf != nil:
		p.b.WriteString(copyLetters[n.Phase])
	default:
		p.b.WriteString(phaseLetters[n.Phase])
	}
	p.b.WriteByte(' ')
	writeOp(&p.b, n.Op)
	for _, v := range n.In {
		p.b.WriteByte(' ')
		p.value(v)
	}
	for i, v := range n.Out {
		if i == 0 {
			p.b.WriteString(" : ")
		} else {
			p.b.WriteString(", ")
		}
		if v != nil {
			p.b.WriteString(v.Type.String())
		}
	}
	p.note(n)
}

// note writes what stands after the semicolon.
func (p *printer) note(n *Node) {
	before := "  ; "
	word := func(text string) {
		p.b.WriteString(before + text)
		before = " "
	}
	if n.CopyOf != nil {
		word("recompute of ")
		if len(n.CopyOf.Out) > 0 {
			p.value(n.CopyOf.Out[0])
		} else {
			p.b.WriteString("%?")
		}
		before = ", "
	}
	o := n.Origin
	any := false
	field := func(set bool, text string) {
		if set {
			word(text)
			any = true
		}
	}
	if o.Node == "recompute" { // would read as the beginning of "recompute of"
		field(true, strconv.Quote(o.Node))
	} else {
		field(o.Node != "", atom(o.Node))
	}
	field(o.OpType != "", "op="+atom(o.OpType))
	field(o.Index != 0, "index="+strconv.Itoa(int(o.Index)))
	field(o.Opset != 0, "opset="+strconv.FormatInt(o.Opset, 10))
	field(o.Scope != "", "scope="+atom(o.Scope))
	// A node without any origin has no file either, so the graph's file stands for the others alone.
	if !p.bare && (any && o.File != p.file || !any && o.File != "") {
		word("file=" + atom(o.File))
	}
}

// Line is a node as the text form shows it, for messages.
func (n *Node) Line() string {
	p := printer{}
	if n != nil {
		p.file = n.Origin.File
	}
	p.node(n)
	return p.b.String()
}
