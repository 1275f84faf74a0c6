package ptx

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"strings"
)

// RuntimeHeader is ptxrt.h: what the C that TranslateC writes and the host that runs it agree on.
//
//go:embed rt/ptxrt.h
var RuntimeHeader string

// sources is the translator itself.
//
//go:embed c.go c_*.go flatten.go flow.go lex.go lint.go lint_table.go module.go order.go parse.go parse_entry.go
var sources embed.FS

// Fingerprint names what turns a text into C and a library: it changes with this package's code, the header and the flags. Caches of
// translations are kept under it.
func Fingerprint() string {
	h := sha256.New()
	entries, err := sources.ReadDir(".")
	if err != nil {
		panic("ptx: own sources: " + err.Error())
	}
	for _, e := range entries { // sorted by name
		b, err := sources.ReadFile(e.Name())
		if err != nil {
			panic("ptx: own sources: " + err.Error())
		}
		h.Write(b)
	}
	fmt.Fprint(h, RuntimeHeader, CFlags())
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// CFlags are the flags that translated C needs: its arithmetic must not be fused, and its lane loops should become
// vector instructions. -O2 takes half as long again to compile and gains nothing measurable: the host's part of a kernel dominates.
func CFlags() []string {
	return []string{"-std=gnu11", "-O1", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-march=native", "-ffp-contract=off", "-fno-math-errno",
		"-fno-trapping-math", "-w", "-fPIC", "-shared"}
}

// TranslateC turns a module into C: one function per kernel and the symbol ptx_module_info that tells of them. The C includes ptxrt.h. All
// faults are listed in the error, each an *Error.
func TranslateC(m *Module) (string, error) {
	t := &moduleC{m: m, lanes: map[string]string{}}
	if m.ArchOnly {
		t.errs = append(t.errs, &Error{1, fmt.Sprintf("target %s runs on that architecture only", m.Target)})
	}
	t.linef("#include \"ptxrt.h\"")
	for _, n := range []int{8, 16, 32, 64} {
		t.linef("static inline uint%d_t param%d(const ptx_warp *w, int o) { uint%d_t x; memcpy(&x, w->param + o, sizeof x); return x; }", n, n, n)
	}
	t.globals()
	var rows []string
	for n, e := range m.Entries {
		rows = append(rows, t.entry(e, n))
	}
	t.linef("static const ptx_entry entries[] = {\n%s\n\t{0}};", strings.Join(rows, "\n"))
	t.linef("const ptx_module ptx_module_info = {PTX_ABI, %d, %d, %d, %d, entries, vars};", m.Version.Major*10+m.Version.Minor, m.SM, len(m.Entries), t.vars)
	if len(t.errs) > 0 {
		return "", errors.Join(t.errs...)
	}
	return t.String(), nil
}

type moduleC struct {
	strings.Builder
	m    *Module
	vars int
	errs []error
	// functions over lanes, by their text
	lanes map[string]string
}

// laneFunction is the name of the function with this text after its name; it is written when it is first asked for.
func (t *moduleC) laneFunction(text string) string {
	name, ok := t.lanes[text]
	if !ok {
		name = fmt.Sprintf("lane%d", len(t.lanes))
		t.lanes[text] = name
		t.linef("static __attribute__((noinline)) void %s%s", name, text)
	}
	return name
}

func (t *moduleC) linef(format string, args ...any) {
	fmt.Fprintf(t, format, args...)
	t.WriteByte('\n')
}

// globals writes the table of the module's variables in device memory.
func (t *moduleC) globals() {
	var rows []string
	for _, v := range t.m.Vars {
		if v.Space == ".shared" {
			continue
		}
		if v.Linkage == ".extern" || v.SizeBytes() == 0 {
			t.errs = append(t.errs, &Error{v.Line, fmt.Sprintf("variable %s has no size here", v.Name)})
			continue
		}
		init, n := "0", int64(0)
		if len(v.Init) > 0 {
			bytes := initBytes(v)
			if bytes == nil {
				t.errs = append(t.errs, &Error{v.Line, fmt.Sprintf("%s has more initial values than elements", v.Name)})
				continue
			}
			n = int64(len(bytes))
			var b strings.Builder
			for k, x := range bytes {
				if k > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, "%d", x)
			}
			t.linef("static const uint8_t init_%s[] = {%s};", cName(v.Name), b.String())
			init = "init_" + cName(v.Name)
		}
		t.linef("static uint64_t at_%s;", cName(v.Name))
		rows = append(rows, fmt.Sprintf("\t{%q, %d, %d, %d, %s, %d, &at_%s},", v.Name, v.SizeBytes(), v.AlignBytes(), btoi(v.Space == ".const"), init, n, cName(v.Name)))
	}
	t.vars = len(rows)
	t.linef("static const ptx_var vars[] = {\n%s\n\t{0}};", strings.Join(rows, "\n"))
}

// initBytes lays initial values out as little-endian bytes; nil if there are too many.
func initBytes(v *Var) []byte {
	size := TypeBits(v.Type) / 8
	if int64(len(v.Init)*size) > v.SizeBytes() {
		return nil
	}
	var out []byte
	for _, o := range v.Init {
		for k := range size {
			out = append(out, byte(o.Bits>>(8*k)))
		}
	}
	return out
}

// entry writes a kernel's function and returns its row in the table.
func (t *moduleC) entry(e *Entry, n int) string {
	k := newKernelC(t, e)
	body := ""
	if len(k.f.errs) == 0 { // names that do not exist would only breed more faults
		body = k.function(fmt.Sprintf("kernel%d", n))
	}
	for _, err := range k.f.errs {
		t.errs = append(t.errs, fmt.Errorf("kernel %s: %w", e.Name, err))
	}
	t.WriteString(body)
	var ps strings.Builder
	for _, p := range e.Params {
		fmt.Fprintf(&ps, "{%q, %d, %d}, ", p.Name, k.params[p.Name].offset, k.params[p.Name].bytes)
	}
	t.linef("static const ptx_param params%d[] = {%s{0}};", n, ps.String())
	product := func(a []int64) int64 {
		if a == nil {
			return 0
		}
		p := int64(1)
		for _, x := range a {
			p *= x
		}
		return min(p, 1<<20)
	}
	req := append(append([]int64{}, e.PerfArgs(".reqntid")...), 1, 1, 1)[:3]
	if e.PerfArgs(".reqntid") == nil {
		req = []int64{0, 0, 0}
	}
	ctas := append(append([]int64{}, e.PerfArgs(".minnctapersm")...), 0)[0]
	return fmt.Sprintf("\t{%q, kernel%d, sizeof(kernel%d_regs), %d, %d, %d, %d, %d, %d, %d, %d, {%d, %d, %d}, params%d},", e.Name, n, n,
		k.sharedBytes, k.localBytes, k.paramBytes, len(e.Params), len(k.f.regs), k.flags, product(e.PerfArgs(".maxntid")), ctas, req[0], req[1], req[2], n)
}
