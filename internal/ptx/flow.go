package ptx

// block is a stretch of a kernel that is entered at its first instruction and left at its last.
type block struct {
	label string // empty if none leads here
	code  []*Inst
	next  []int // successors
}

// endsBlock tells whether an instruction is a block's last: after it, the lanes that go on may not be those before.
func endsBlock(i *Inst) bool {
	switch i.Opcode {
	case "bra", "brx", "ret", "exit", "trap":
		return true
	case "bar", "barrier":
		return !i.Has("warp")
	}
	return false
}

// blocks cuts the code at labels and after what ends a block.
func (f *flat) blocks() []*block {
	var out []*block
	at := map[string]int{}
	var cur *block
	for _, i := range f.code {
		if i.Opcode == ":" {
			cur = &block{label: i.Mods[0]}
			at[cur.label] = len(out)
			out = append(out, cur)
			continue
		}
		if cur == nil {
			cur = &block{}
			out = append(out, cur)
		}
		cur.code = append(cur.code, i)
		if endsBlock(i) {
			cur = nil
		}
	}
	if len(out) == 0 || len(out[len(out)-1].code) == 0 || !final(out[len(out)-1].code) {
		out = append(out, &block{code: []*Inst{{Opcode: "ret"}}})
	}
	for n, b := range out {
		b.next = f.successors(b, n, at)
	}
	return out
}

// final tells whether code ends with an instruction after which no lane goes on.
func final(code []*Inst) bool {
	i := code[len(code)-1]
	switch i.Opcode {
	case "ret", "exit", "trap", "bra", "brx":
		return i.Guard == ""
	}
	return false
}

func (f *flat) successors(b *block, n int, at map[string]int) []int {
	var next []int
	if len(b.code) == 0 {
		return []int{n + 1}
	}
	last := b.code[len(b.code)-1]
	switch last.Opcode {
	case "bra":
		if len(last.Args) == 1 {
			next = append(next, at[last.Args[0].Name])
		}
	case "brx":
		if len(last.Args) == 2 {
			for _, l := range f.targets[last.Args[1].Name] {
				next = append(next, at[l])
			}
		}
	}
	if !final(b.code) {
		next = append(next, n+1)
	}
	return next
}

// effects calls use and def for the registers of an instruction. A guarded definition keeps the old value where the guard fails, so it
// is a use as well.
func effects(i *Inst, use, def func(string)) {
	var read func(o Operand)
	read = func(o Operand) {
		if o.Kind == Reg && special(o.Name) == 0 {
			use(o.Name)
		}
		for _, e := range o.Elems {
			read(e)
		}
	}
	var write func(o Operand)
	write = func(o Operand) {
		switch o.Kind {
		case Reg:
			if special(o.Name) > 0 {
				return // refused where it is translated
			}
			if i.Guard != "" {
				use(o.Name)
			}
			def(o.Name)
		case Vec, Pair:
			for _, e := range o.Elems {
				write(e)
			}
		}
	}
	if i.Guard != "" {
		use(i.Guard)
	}
	for k, a := range i.Args {
		if k > 0 || !hasResult(i) {
			read(a)
		}
	}
	if readsCarry(i) {
		use(carry)
	}
	if writesCarry(i) {
		if i.Guard != "" {
			use(carry)
		}
		def(carry)
	}
	if hasResult(i) && len(i.Args) > 0 {
		write(i.Args[0])
	}
}

// carry is the register of add.cc and its kin.
const carry = "xcarry"

func readsCarry(i *Inst) bool  { return i.Opcode == "addc" || i.Opcode == "subc" || i.Opcode == "madc" }
func writesCarry(i *Inst) bool { return i.Has("cc") }

// hasResult tells whether the first operand is written.
func hasResult(i *Inst) bool {
	switch i.Opcode {
	case "st", "red", "bra", "brx", "ret", "exit", "trap", "bar", "barrier", "membar", "fence", "cp", "prefetch", "prefetchu", "pmevent", "nanosleep", "discard":
		return false
	}
	return true
}
