package plan

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"aitk/ir"
)

// How views for reading name things. Names come from model files; plain makes them harmless on a terminal and in a picture.

// spaceLetters begin a buffer's name: b12 on the device, h2 in pinned memory.
var spaceLetters = [ir.NumSpaces]string{ir.Device: "b", ir.Pinned: "h", ir.Pageable: "p", ir.Disk: "f"}

func (p *Plan) bufferName(b BufferID) string {
	if !p.isBuffer(b) {
		return "-"
	}
	return spaceLetters[p.Buffers[b].Type.Space] + strconv.Itoa(int(b))
}

// refName is a buffer's name, with the stretch where it is not the whole of what the buffer stores.
func (p *Plan) refName(r Ref) string {
	s := p.bufferName(r.Buffer)
	if n := r.Type.Bytes(); r.Offset != 0 || n != p.Buffers[r.Buffer].Type.Bytes() {
		s += fmt.Sprintf("[%d:%d]", r.Offset, r.Offset+n)
	}
	return s
}

// place is where a reference lies: b12@0x0040000; storage has no address.
func (p *Plan) place(r Ref) string {
	b := &p.Buffers[r.Buffer]
	if b.Type.Space == ir.Disk {
		return p.refName(r)
	}
	return fmt.Sprintf("%s@%#07x", p.refName(r), b.Offset+r.Offset)
}

func (p *Plan) symbolName(s SymbolID) string {
	if s < 0 || int(s) >= len(p.Symbols) {
		return ""
	}
	if x := &p.Symbols[s]; x.Name != "" {
		return x.Name
	} else if x.Value >= 0 {
		return "%" + strconv.Itoa(int(x.Value))
	}
	return "s" + strconv.Itoa(int(s))
}

// plain shows control characters, and bytes that are no text, as Go writes them.
func plain(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) {
			q := strconv.QuoteToASCII(s[i : i+n])
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// short cuts a name in the middle to at most n characters: both ends tell more than the middle.
func short(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	head := (n - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}

// FormatBytes is a size for reading: 11.5 MiB; exact below 10 KiB.
func FormatBytes(n int64) string {
	if n < 0 {
		return "-" + FormatBytes(-max(n, -1<<62))
	}
	if n < 10<<10 {
		return strconv.FormatInt(n, 10) + " B"
	}
	x := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if x /= 1024; x < 999.95 {
			return strconv.FormatFloat(x, 'f', 1, 64) + " " + unit
		}
	}
	return strconv.FormatFloat(x/1024, 'f', 1, 64) + " TiB"
}

// FormatPicos is a time for reading: 12.3 ms.
func FormatPicos(n int64) string {
	x := float64(n)
	for _, unit := range []string{"ps", "ns", "us", "ms"} {
		if x < 999.5 {
			return strconv.FormatFloat(x, 'g', 3, 64) + " " + unit
		}
		x /= 1000
	}
	return strconv.FormatFloat(x, 'f', 2, 64) + " s"
}

// percent is part of whole for reading: 3.1 %.
func percent(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + " %"
}

// from tells an op's place in the model: scope/node, or what we called it.
func from(o ir.Origin) string {
	switch {
	case o.Scope != "" && o.Node != "" && !strings.HasPrefix(o.Node, o.Scope):
		return o.Scope + "/" + o.Node
	case o.Node != "":
		return o.Node
	case o.OpType != "" && o.Scope != "":
		return fmt.Sprintf("%s/%s#%d", o.Scope, o.OpType, o.Index)
	case o.OpType != "":
		return fmt.Sprintf("%s#%d", o.OpType, o.Index)
	}
	return o.Scope
}

// firstWrites finds, for each symbol, the first op of a program that computes it; -1.
func (p *Plan) firstWrites(pr *Program) []int32 {
	out := make([]int32, len(p.Symbols))
	for i := range out {
		out[i] = -1
	}
	for pc, i := range pr.Instrs {
		if x, ok := i.(*Exec); ok {
			for _, r := range x.Out {
				if s := p.Buffers[r.Buffer].Holds; s >= 0 && out[s] < 0 {
					out[s] = int32(pc)
				}
			}
		}
	}
	return out
}

// nextReads finds, for each instruction, the next op after it that reads the symbol which it writes first; -1. For a swap-out it is the
// first one that waits for the way back.
func (p *Plan) nextReads(pr *Program) []int32 {
	next := make([]int32, len(p.Symbols))
	back := make([]int32, len(p.Symbols)) // next, as seen by the next swap-in
	for i := range next {
		next[i], back[i] = -1, -1
	}
	out := make([]int32, len(pr.Instrs))
	for pc := len(pr.Instrs) - 1; pc >= 0; pc-- {
		out[pc] = -1
		switch x := pr.Instrs[pc].(type) {
		case *Exec:
			if len(x.Out) > 0 {
				if s := p.Buffers[x.Out[0].Buffer].Holds; s >= 0 {
					out[pc] = next[s]
				}
			}
			for _, r := range x.In {
				if s := p.Buffers[r.Buffer].Holds; s >= 0 {
					next[s] = int32(pc)
				}
			}
		case *Copy:
			s := p.Buffers[x.Dst.Buffer].Holds
			switch {
			case s < 0:
			case x.Kind == CopySwapOut && back[s] >= 0:
				out[pc] = back[s]
			default:
				out[pc] = next[s]
			}
			if s >= 0 && x.Kind == CopySwapIn {
				back[s] = next[s]
			}
		}
	}
	return out
}
