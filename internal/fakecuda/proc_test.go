package fakecuda

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// proc is a child process that has the fake loaded; tests call the driver through it, without cgo.
type proc struct {
	t   testing.TB
	ctl *Control
	in  io.WriteCloser
	out *bufio.Reader
	mem map[string]uint64
}

var built = sync.OnceValues(func() (*Lib, error) { return Build("") })

var server = sync.OnceValues(func() (string, error) {
	lib, err := built()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(lib.Path), "serve")
	out, err := exec.Command("gcc", "-std=gnu11", "-w", "-O1", "-o", path, "testdata/serve.c", "-ldl").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

// start begins a process with a control file of its own, whose settings come in pairs.
func start(t testing.TB, set map[string]int64) *proc {
	t.Helper()
	lib, err := built()
	if errors.Is(err, ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	path, err := server()
	if err != nil {
		t.Fatal(err)
	}
	ctl, err := lib.NewControl(filepath.Join(t.TempDir(), "control"))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range set {
		ctl.Set(k, v)
	}
	c := exec.Command(path, lib.Path)
	c.Env = append(os.Environ(), ctl.Env()...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		ctl.Close()
	})
	return &proc{t: t, ctl: ctl, in: in, out: bufio.NewReader(out), mem: map[string]uint64{}}
}

func (p *proc) send(b []byte) {
	if _, err := p.in.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

func (p *proc) num() uint64 {
	var b [8]byte
	if _, err := io.ReadFull(p.out, b[:]); err != nil {
		p.t.Fatalf("the process with the fake is gone: %v\n%s", err, strings.Join(p.ctl.Reports(), "\n"))
	}
	return binary.LittleEndian.Uint64(b[:])
}

// raw calls a function and returns its 64-bit answer.
func (p *proc) raw(name string, args ...any) uint64 {
	p.t.Helper()
	b := []byte{'C'}
	b = binary.LittleEndian.AppendUint64(b, uint64(len(name)))
	b = append(b, name...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(args)))
	for _, a := range args {
		var v uint64
		switch a := a.(type) {
		case int:
			v = uint64(a)
		case uint64:
			v = a
		case uint32:
			v = uint64(a)
		case string:
			v = p.text(a)
		default:
			p.t.Fatalf("argument %T", a)
		}
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	p.send(b)
	if p.num() == 0 {
		p.t.Fatalf("%s is not exported", name)
	}
	return p.num()
}

// try calls a driver function and returns its code.
func (p *proc) try(name string, args ...any) int {
	p.t.Helper()
	return int(int32(p.raw(name, args...)))
}

// call calls a driver function that must succeed.
func (p *proc) call(name string, args ...any) {
	p.t.Helper()
	if code := p.try(name, args...); code != 0 {
		p.t.Fatalf("%s: %d\n%s", name, code, strings.Join(p.ctl.Reports(), "\n"))
	}
}

// get calls a driver function whose first argument is where its 64-bit result goes.
func (p *proc) get(name string, args ...any) uint64 {
	p.t.Helper()
	at := p.room("result", 16)
	p.write(at, make([]byte, 16))
	p.call(name, append([]any{at}, args...)...)
	return binary.LittleEndian.Uint64(p.read(at, 8))
}

func (p *proc) malloc(n int) uint64 {
	p.send(binary.LittleEndian.AppendUint64([]byte{'M'}, uint64(n)))
	return p.num()
}

// room is memory for one purpose, made once.
func (p *proc) room(name string, n int) uint64 {
	if p.mem[name] == 0 {
		p.mem[name] = p.malloc(n)
	}
	return p.mem[name]
}

func (p *proc) text(s string) uint64 {
	at := p.malloc(len(s))
	p.write(at, append([]byte(s), 0))
	return at
}

func (p *proc) write(at uint64, data []byte) {
	b := binary.LittleEndian.AppendUint64([]byte{'W'}, at)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	p.send(append(b, data...))
}

func (p *proc) read(at uint64, n int) []byte {
	b := binary.LittleEndian.AppendUint64([]byte{'R'}, at)
	p.send(binary.LittleEndian.AppendUint64(b, uint64(n)))
	out := make([]byte, n)
	if _, err := io.ReadFull(p.out, out); err != nil {
		p.t.Fatal(err)
	}
	return out
}

// device is a process with a context and what a test loaded.
type device struct {
	*proc
	fns map[string]uint64
	mod uint64
}

func open(t testing.TB, set map[string]int64) *device {
	t.Helper()
	d := &device{proc: start(t, set), fns: map[string]uint64{}}
	d.call("cuInit", 0)
	ctx := d.get("cuDevicePrimaryCtxRetain", 0)
	d.call("cuCtxSetCurrent", ctx)
	return d
}

// load loads a PTX text; kernels are then found by name.
func (d *device) load(text string) {
	d.t.Helper()
	log := d.room("log", 1<<13)
	opts, vals := d.malloc(8), d.malloc(16)
	d.write(opts, []byte{5, 0, 0, 0, 6, 0, 0, 0})
	d.write(vals, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, log), 1<<13))
	at := d.malloc(8)
	if code := d.try("cuModuleLoadDataEx", at, text, 2, opts, vals); code != 0 {
		l := d.read(log, 1<<13)
		d.t.Fatalf("cuModuleLoadDataEx: %d %s", code, l[:max(0, strings.IndexByte(string(l), 0))])
	}
	d.mod = binary.LittleEndian.Uint64(d.read(at, 8))
	d.fns = map[string]uint64{}
}

func (d *device) fn(name string) uint64 {
	d.t.Helper()
	if d.fns[name] == 0 {
		d.fns[name] = d.get("cuModuleGetFunction", d.mod, name)
	}
	return d.fns[name]
}

// bytesOf is a slice's memory.
func bytesOf[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}

func (d *device) alloc(bytes int) uint64 { d.t.Helper(); return d.get("cuMemAlloc_v2", bytes) }

// up allocates device memory with the values.
func up[T any](d *device, v []T) uint64 {
	d.t.Helper()
	at := d.alloc(len(bytesOf(v)))
	h := d.malloc(len(bytesOf(v)))
	d.write(h, bytesOf(v))
	d.call("cuMemcpyHtoD_v2", at, h, len(bytesOf(v)))
	return at
}

// down reads n values from device memory.
func down[T any](d *device, at uint64, n int) []T {
	d.t.Helper()
	out := make([]T, n)
	h := d.malloc(len(bytesOf(out)))
	d.call("cuMemcpyDtoH_v2", h, at, len(bytesOf(out)))
	copy(bytesOf(out), d.read(h, len(bytesOf(out))))
	return out
}

// args lays out kernel arguments: 8 bytes each, as most bindings do.
func (d *device) args(args []any) uint64 {
	var vals []byte
	for _, a := range args {
		var slot [8]byte
		switch a := a.(type) {
		case uint64:
			binary.LittleEndian.PutUint64(slot[:], a)
		case int:
			binary.LittleEndian.PutUint64(slot[:], uint64(a))
		case float32:
			copy(slot[:], bytesOf([]float32{a}))
		case float64:
			copy(slot[:], bytesOf([]float64{a}))
		default:
			d.t.Fatalf("kernel argument %T", a)
		}
		vals = append(vals, slot[:]...)
	}
	at := d.malloc(len(vals))
	d.write(at, vals)
	var ptrs []byte
	for i := range args {
		ptrs = binary.LittleEndian.AppendUint64(ptrs, at+uint64(8*i))
	}
	pp := d.malloc(len(ptrs))
	d.write(pp, ptrs)
	return pp
}

type dims [3]int

func (d *device) tryLaunch(stream uint64, name string, grid, block dims, shared int, args ...any) int {
	d.t.Helper()
	return d.try("cuLaunchKernel", d.fn(name), grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream, d.args(args), 0)
}

func (d *device) launch(stream uint64, name string, grid, block dims, shared int, args ...any) {
	d.t.Helper()
	if code := d.tryLaunch(stream, name, grid, block, shared, args...); code != 0 {
		d.t.Fatalf("launch of %s: %d\n%s", name, code, strings.Join(d.ctl.Reports(), "\n"))
	}
}

// clean fails the test if the fake found anything.
func (d *device) clean() {
	d.t.Helper()
	d.try("cuCtxSynchronize")
	if err := d.ctl.Clean(); err != nil {
		d.t.Error(err)
	}
}

func ptxText(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "ptx", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func rng() *rand.Rand { return rand.New(rand.NewPCG(12, 12)) }
