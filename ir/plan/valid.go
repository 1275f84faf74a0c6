package plan

import (
	"fmt"
	"math"

	"aitk/ir"
)

// valid says whether every index and every number of a list in the plan means something, so that file and views can be written without
// looking again. It returns the first fault. What a plan must be beyond that is for plan/check, which shares nothing with this.
func (p *Plan) valid() error {
	for i := range p.Arenas {
		if s := p.Arenas[i].Space; s >= ir.NumSpaces {
			return fmt.Errorf("arena %d is in unknown %v", i, s)
		}
	}
	for i := range p.Symbols {
		if s := &p.Symbols[i]; s.Program < -1 || int(s.Program) >= len(p.Programs) || s.Bytes < 0 {
			return fmt.Errorf("symbol %d %q: program %d, %d bytes", i, s.Name, s.Program, s.Bytes)
		}
	}
	for i := range p.Buffers {
		if err := p.validBuffer(&p.Buffers[i]); err != nil {
			return fmt.Errorf("buffer b%d %q: %w", i, p.Buffers[i].Name, err)
		}
	}
	for i := range p.Params {
		x := &p.Params[i]
		if err := validType(x.Type); err != nil {
			return fmt.Errorf("parameter %q: %w", x.Name, err)
		}
		if x.Role >= ir.NumRoles || x.Init.Kind > ir.InitUniform || x.Storage != NoBuffer && !p.isBuffer(x.Storage) {
			return fmt.Errorf("parameter %q: role %d, init %d, storage b%d", x.Name, x.Role, x.Init.Kind, x.Storage)
		}
		if x.Init.Packed() {
			if err := validType(x.Init.Pack.Source); err != nil {
				return fmt.Errorf("parameter %q is packed from: %w", x.Name, err)
			}
		}
	}
	for i := range p.Programs {
		pr := &p.Programs[i]
		for pc, x := range pr.Instrs {
			if err := p.validInstr(pr, x); err != nil {
				return fmt.Errorf("%s pc %d: %w", pr.Name, pc, err)
			}
		}
		for _, list := range [2][]Port{pr.Inputs, pr.Results} {
			for _, x := range list {
				if err := p.validRef(x.Ref); err != nil {
					return fmt.Errorf("%s: %q: %w", pr.Name, x.Name, err)
				}
			}
		}
		for _, list := range [2][]Residency{pr.Entry, pr.Exit} {
			for _, x := range list {
				if x.Param < 0 || int(x.Param) >= len(p.Params) || !p.isBuffer(x.Buffer) {
					return fmt.Errorf("%s: parameter %d in b%d does not exist", pr.Name, x.Param, x.Buffer)
				}
			}
		}
	}
	return p.validReport()
}

func (p *Plan) isBuffer(b BufferID) bool { return b >= 0 && int(b) < len(p.Buffers) }

func (p *Plan) validBuffer(b *Buffer) error {
	if err := validType(b.Type); err != nil {
		return err
	}
	switch {
	case b.Offset < 0 || b.Bytes < 0 || b.Offset > math.MaxInt64-b.Bytes:
		return fmt.Errorf("offset %d, %d bytes", b.Offset, b.Bytes)
	case b.Holds != NoSymbol && (b.Holds < 0 || int(b.Holds) >= len(p.Symbols)):
		return fmt.Errorf("holds symbol %d, which does not exist", b.Holds)
	case b.Category >= NumCategories:
		return fmt.Errorf("category %d", b.Category)
	}
	for _, s := range b.Live {
		if s.Program < 0 || int(s.Program) >= len(p.Programs) || s.Start < 0 || s.Start > s.End || int(s.End) > len(p.Programs[s.Program].Instrs) {
			return fmt.Errorf("span %d..%d of program %d", s.Start, s.End, s.Program)
		}
	}
	return nil
}

func (p *Plan) validInstr(pr *Program, i Instr) error {
	switch x := i.(type) {
	case *Exec:
		if x == nil || x.Op == nil || x.Lane >= NumLanes || x.Phase >= ir.NumPhases || x.Picos < 0 || x.Scratch != NoBuffer && !p.isBuffer(x.Scratch) {
			return fmt.Errorf("an op without name, lane, phase, time or scratch")
		}
		for _, list := range [2][]Ref{x.In, x.Out} {
			for _, r := range list {
				if err := p.validRef(r); err != nil {
					return err
				}
			}
		}
		return nil
	case *Copy:
		if x == nil || x.Lane >= NumLanes || x.Kind >= NumCopyKinds || x.Picos < 0 {
			return fmt.Errorf("a copy without lane, kind or time")
		}
		if err := p.validRef(x.Src); err != nil {
			return err
		}
		return p.validRef(x.Dst)
	case *Wait:
		if x == nil || x.Lane >= NumLanes || x.On < 0 || int(x.On) >= len(pr.Instrs) || x.Back < 0 || x.Back > 1 {
			return fmt.Errorf("a wait without lane, or for no instruction")
		}
		return nil
	}
	return fmt.Errorf("unknown instruction %T", i)
}

func (p *Plan) validRef(r Ref) error {
	if !p.isBuffer(r.Buffer) {
		return fmt.Errorf("b%d does not exist", r.Buffer)
	}
	return validType(r.Type)
}

func validType(t ir.Type) error {
	if t.DType.Bits() == 0 || t.Space >= ir.NumSpaces {
		return fmt.Errorf("type %v", t)
	}
	return t.Shape.Check()
}

func (p *Plan) validReport() error {
	step, _ := p.Program("step")
	at := func(pc int32) bool { return pc == -1 || step != nil && pc >= 0 && int(pc) < len(step.Instrs) }
	for _, x := range p.Report.Phases {
		if !at(x.At) {
			return fmt.Errorf("report: peak of phase %q at pc %d", x.Name, x.At)
		}
		for _, b := range x.Alive {
			if !p.isBuffer(b) {
				return fmt.Errorf("report: phase %q: b%d does not exist", x.Name, b)
			}
		}
	}
	if b := p.Report.BindingAt; p.Report.BindingPicosPerGiB > 0 && (b < 0 || int64(int32(b)) != b || !at(int32(b))) {
		return fmt.Errorf("report: bytes are dearest at pc %d", b)
	}
	for _, x := range p.Report.Decisions {
		if x.Symbol < 0 || int(x.Symbol) >= len(p.Symbols) || !at(x.At) {
			return fmt.Errorf("report: decision on symbol %d at pc %d", x.Symbol, x.At)
		}
	}
	return nil
}
