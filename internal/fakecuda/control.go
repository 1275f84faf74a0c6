package fakecuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
)

// The control file: settings, counters, strings, reports. Both sides map or read it; the C side takes the numbers from header().
const (
	controlBytes   = 1 << 18
	countersOffset = 4096
	stringsOffset  = 8192
	stringBytes    = 1024
	reportsOffset  = 12288
)

// setting is a number that a test may set at any time; the fake looks at it with every call.
type setting struct {
	name    string
	initial int64
	doc     string
}

func settings() []setting {
	return []setting{
		{"seed", 0, "0: everything runs when it is enqueued; else the order of streams, of warps in a block and how far the device lags behind are drawn from it"},
		{"checkLevel", 2, "0: bounds, alignment, divergence and planned ranges; 1: also races between operations and uninitialised reads; 2: also races within a launch"},
		{"workers", 2, "threads that share the blocks of a launch, 1 or 2; results do not depend on it"},
		{"vramBytes", 1 << 30, "memory of the device"},
		{"contextBytes", 0, "of which the context takes"},
		{"pinnedLimitBytes", 0, "limit of pinned memory; 0: none"},
		{"devices", 1, "number of devices; 0: cuInit answers CUDA_ERROR_NO_DEVICE"},
		{"sm", 80, "compute capability times ten"},
		{"driverVersion", 12060, "as cuDriverGetVersion answers; bounds the PTX version"},
		{"multiprocessors", 32, "for occupancy"},
		{"sharedOptinBytes", 166912, "shared memory that a block may ask for"},
		{"h2dBytesPerSecond", 25e9, "simulated link, host to device"},
		{"d2hBytesPerSecond", 25e9, "and back; each direction has one copy engine"},
		{"copyLatencyPicos", 0, "added to every copy over the link"},
		{"kernelLatencyPicos", 0, "added to every kernel and to copies within the device"},
		{"flopsPerSecond", 10e12, "simulated arithmetic of kernels whose length fakeExpect does not give"},
		{"deviceBytesPerSecond", 1e12, "simulated device memory"},
		{"maxBranches", 1 << 28, "taken branches of a warp after which a kernel counts as endless"},
		{"failAtLaunch", 0, "the n-th launch since the start finds the device lost; 0: none"},
		{"failAtCall", 0, "the n-th call that needs a context fails; 0: none"},
		{"failCode", 719, "with what; codes from 700 on and 214 are the device's end and stay, other failures of a call are over with it"},
		{"verbose", 0, "1: reports also go to standard error"},
		{"resetCount", 0, "raised by Reset"},
	}
}

// counterNames are what the fake counts.
func counterNames() []string {
	return []string{
		// faults: all must be 0
		"races", "launchRaces", "sharedRaces", "hostRaces", "outOfBounds", "outOfRange", "readOnlyWrites", "uninitialised", "misaligned", "divergent", "faults",
		"unpinnedCopies", "outOfMemory", "refusedLaunches", "readersForgotten",
		// memory
		"deviceAllocations", "deviceBytes", "deviceHighWater", "pinnedAllocations", "pinnedBytes", "pinnedHighWater", "registrations", "leakedAllocations", "leakedStreams",
		// work
		"launches", "graphLaunches", "graphs", "copies", "memsets", "bytesH2D", "bytesD2H", "bytesD2D", "bytesH2H", "records", "waits", "synchronizations", "streams",
		"events", "calls", "contexts", "modules", "translations", "flops", "kernelBytes", "instructions", "floatAtomics", "errors", "reports",
		// simulated clock
		"simPicos", "simCopyPicos", "simKernelPicos",
	}
}

// Faults are the counters that a correct program leaves at 0.
func Faults() []string {
	names := counterNames()
	return names[:slices.Index(names, "readersForgotten")]
}

func stringNames() []string { return []string{"translator", "cache"} }

// header is fake_names.h: the C side's view of the lists above.
func header() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#define CONTROL_BYTES %d\n#define COUNTERS_OFFSET %d\n#define STRINGS_OFFSET %d\n#define STRING_BYTES %d\n#define REPORTS_OFFSET %d\nenum {\n",
		controlBytes, countersOffset, stringsOffset, stringBytes, reportsOffset)
	defaults := ""
	for i, s := range settings() {
		fmt.Fprintf(&b, "\tSETTING_%s = %d, // %s\n", s.name, i, s.doc)
		defaults += fmt.Sprintf("%d, ", s.initial)
	}
	for i, c := range counterNames() {
		fmt.Fprintf(&b, "\tCOUNTER_%s = %d,\n", c, i)
	}
	for i, s := range stringNames() {
		fmt.Fprintf(&b, "\tSTRING_%s = %d,\n", s, i)
	}
	fmt.Fprintf(&b, "};\n#define SETTING_DEFAULTS {%s}\n", defaults)
	return b.String()
}

// Control is the control file of one process that uses the fake.
type Control struct {
	Path string
	lib  *Lib
	f    *os.File
}

// NewControl makes a control file with every setting at its default.
func (l *Lib) NewControl(path string) (*Control, error) {
	buf := make([]byte, controlBytes)
	for i, s := range settings() {
		binary.LittleEndian.PutUint64(buf[8*i:], uint64(s.initial))
	}
	for i, s := range []string{l.Translator, l.Cache} {
		if len(s) >= stringBytes-64 {
			return nil, fmt.Errorf("path %s is too long for the control file", s)
		}
		copy(buf[stringsOffset+i*stringBytes:], s)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteAt(buf, 0); err != nil {
		f.Close()
		return nil, err
	}
	return &Control{Path: path, lib: l, f: f}, nil
}

// OpenControl opens a control file that another process made, as a child finds it under the environment's AITK_FAKE.
func OpenControl(path string) (*Control, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &Control{Path: path, f: f}, nil
}

// Close closes the file; the fake keeps its own map of it.
func (c *Control) Close() error { return c.f.Close() }

// Env is what a process needs in its environment, before it starts, to use the fake under this control.
func (c *Control) Env() []string {
	env := []string{"AITK_FAKE=" + c.Path}
	if c.lib != nil {
		env = append(env, "AITK_LIBCUDA="+c.lib.Path)
	}
	return env
}

// Set changes a setting from the fake's next call on. An unknown name is a fault of the test and panics.
func (c *Control) Set(name string, v int64) {
	i := slices.IndexFunc(settings(), func(s setting) bool { return s.name == name })
	if i < 0 {
		panic("fakecuda: no setting " + name)
	}
	c.write(int64(8*i), v)
}

func (c *Control) write(at, v int64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(v))
	if _, err := c.f.WriteAt(b[:], at); err != nil {
		panic(err)
	}
}

func (c *Control) read(at int64) int64 {
	var b [8]byte
	if _, err := c.f.ReadAt(b[:], at); err != nil {
		panic(err)
	}
	return int64(binary.LittleEndian.Uint64(b[:]))
}

// Get reads a counter. An unknown name is a fault of the test and panics.
func (c *Control) Get(name string) int64 {
	i := slices.Index(counterNames(), name)
	if i < 0 {
		panic("fakecuda: no counter " + name)
	}
	return c.read(countersOffset + int64(8*i))
}

// Reset sets the counters to zero and forgets the reports, with the fake's next call; memory in use stays counted.
func (c *Control) Reset() {
	i := slices.IndexFunc(settings(), func(s setting) bool { return s.name == "resetCount" })
	c.write(int64(8*i), c.read(int64(8*i))+1)
}

// Reports are the lines that the fake wrote about what it found, oldest first; when the file is full later ones are only counted.
func (c *Control) Reports() []string {
	buf := make([]byte, controlBytes-reportsOffset)
	if _, err := c.f.ReadAt(buf, reportsOffset); err != nil {
		panic(err)
	}
	if n := bytes.IndexByte(buf, 0); n >= 0 {
		buf = buf[:n]
	}
	return strings.FieldsFunc(string(buf), func(r rune) bool { return r == '\n' })
}

// Clean returns an error that lists every fault counter that is not 0 and the first reports; nil if there is none.
func (c *Control) Clean() error {
	var bad []string
	for _, name := range Faults() {
		if n := c.Get(name); n != 0 {
			bad = append(bad, fmt.Sprintf("%s %d", name, n))
		}
	}
	if bad == nil {
		return nil
	}
	r := c.Reports()
	return fmt.Errorf("%s\n%s", strings.Join(bad, ", "), strings.Join(r[:min(len(r), 8)], "\n"))
}
