package runtime

import (
	"fmt"

	"aitk/ir"
	"aitk/ir/plan"
)

// paramArena is the arena of one parameter in the disk space. A device that is handed a Slice of it calls Download for a load and Upload
// for a save, on the lane of the copy.
type paramArena struct {
	storage Storage
	param   int32
	name    string
	bytes   int64
}

func (a *paramArena) Bytes() int64 { return a.bytes }
func (a *paramArena) Host() []byte { return nil }

func (a *paramArena) Upload(offset int64, src []byte) error {
	if err := a.storage.WriteParam(a.param, src, offset); err != nil {
		return fmt.Errorf("saving parameter %q: %w", a.name, err)
	}
	return nil
}

func (a *paramArena) Download(dst []byte, offset int64) error {
	if err := a.storage.ReadParam(a.param, dst, offset); err != nil {
		return fmt.Errorf("loading parameter %q: %w", a.name, err)
	}
	return nil
}

// Memory is a Storage that holds parameters in memory: for tests, and for content that a plan carries itself. Parameters whose content is in
// files are nil until Set.
type Memory struct {
	names  []string
	params [][]byte
}

// NewMemory gives every parameter of the plan its first content where that is zero, a fill or a literal.
func NewMemory(p *plan.Plan) *Memory {
	m := &Memory{}
	for i := range p.Params {
		m.names = append(m.names, p.Params[i].Name)
		m.params = append(m.params, InitialBytes(&p.Params[i]))
	}
	return m
}

// InitialBytes is the first content of a parameter that needs no file and no packing, nil for one that does.
func InitialBytes(p *plan.Param) []byte {
	if p.Init.Packed() {
		return nil
	}
	switch p.Init.Kind {
	case ir.InitUniform:
		x := ir.NewTensor(p.Type)
		for i := range x.F {
			x.F[i] = float64(ir.UniformAt(p.Init.Seed, int64(i))) * p.Init.Fill
		}
		return x.Encode()
	case ir.InitZero:
		return make([]byte, p.Type.Bytes())
	case ir.InitLiteral:
		return append([]byte{}, p.Init.Literal...)
	case ir.InitFill:
		two := ir.Filled(ir.T(p.Type.DType, 2), p.Init.Fill) // i4 lies two to a byte
		return repeat(two.Encode(), p.Type.Bytes())
	}
	return nil
}

// repeat fills n bytes by doubling.
func repeat(pattern []byte, n int64) []byte {
	out := make([]byte, n)
	for done := copy(out, pattern); done > 0 && int64(done) < n; {
		done += copy(out[done:], out[:done])
	}
	return out
}

// Set gives a parameter its content: little-endian elements.
func (m *Memory) Set(param int32, raw []byte) { m.params[param] = append([]byte{}, raw...) }

// Get is a parameter's content, as last set or saved.
func (m *Memory) Get(param int32) []byte { return m.params[param] }

// ReadParam implements Storage.
func (m *Memory) ReadParam(param int32, dst []byte, offset int64) error {
	src := m.params[param]
	if offset < 0 || offset+int64(len(dst)) > int64(len(src)) {
		return fmt.Errorf("parameter %q has no bytes %d to %d", m.names[param], offset, offset+int64(len(dst)))
	}
	copy(dst, src[offset:])
	return nil
}

// WriteParam implements Storage.
func (m *Memory) WriteParam(param int32, src []byte, offset int64) error {
	end := offset + int64(len(src))
	if have := int64(len(m.params[param])); offset < 0 || offset > have {
		return fmt.Errorf("parameter %q is written at byte %d, with %d there before", m.names[param], offset, have)
	}
	if end > int64(len(m.params[param])) {
		m.params[param] = append(m.params[param][:offset], src...)
		return nil
	}
	copy(m.params[param][offset:], src)
	return nil
}
