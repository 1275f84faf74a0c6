//go:build cuda && linux

package cuda

import (
	"bytes"
	"fmt"
	gort "runtime"

	"gorgonia.org/cu"

	"aitk/ir"
	"aitk/runtime/cuda/drv"
)

// logBytes is room for what the driver says about a text.
const logBytes = 8 << 10

// function finds a kernel function, compiling its module's text when it is first needed, which is by k. A text that does not compile fails once, however many
// kernels want it.
func (d *Device) function(module, name string, k *kernel) (cu.Function, error) {
	key := module + "." + name
	if f, ok := d.functions[key]; ok {
		return f, nil
	}
	var f cu.Function
	if err := d.failed[module]; err != nil {
		return f, err
	}
	err := d.with(func() error {
		m, ok := d.modules[module]
		if !ok {
			var err error
			if m, err = d.compile(module, k); err != nil {
				d.failed[module] = err
				return err
			}
			d.modules[module] = m
			if drv.Checks() {
				d.globals[module] = moduleMemory(m)
			}
		}
		var err error
		if f, err = m.Function(name); err != nil {
			return k.failed(fmt.Errorf("function %s of module %s: %w", name, module, err))
		}
		return nil
	})
	if err == nil {
		d.functions[key] = f
	}
	return f, err
}

// moduleMemory lists the tables that a module has of its own. The names are those in kernels/*.c.
func moduleMemory(m cu.Module) []stretch {
	var out []stretch
	for _, name := range []string{"two_over_pi", "nf4"} {
		if at, bytes, err := m.Global(name); err == nil { // most modules have none of them
			out = append(out, stretch{at.Uintptr(), bytes, name})
		}
	}
	return out
}

// compile hands a text to the driver. What it says goes into the error.
func (d *Device) compile(module string, k *kernel) (cu.Module, error) {
	ptx, err := text(module, d.arch)
	if err != nil {
		return cu.Module{}, err
	}
	log := make([]byte, logBytes)
	option := &cu.JITErrorLogBuffer{Buffer: log}
	m, err := cu.LoadDataEx(ptx, option)
	gort.KeepAlive(option)
	if err != nil {
		said := bytes.TrimSpace(log[:max(0, bytes.IndexByte(log, 0))])
		return m, &ir.Error{Kind: ir.Failed, Cause: fmt.Errorf("%s: the driver does not compile kernels/%s for compute capability %d.%d: %w: %s", k, module, d.arch/10, d.arch%10, err, said),
			Remedy: compileRemedy(err)}
	}
	return m, nil
}
