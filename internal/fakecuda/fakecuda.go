// Package fakecuda builds a CUDA driver for tests: a shared library that stands in for libcuda.so.1, runs the PTX it is given on the
// CPU and checks every access. README.md lists what it answers and what it finds.
//
// Build compiles it (gcc, and the go command for the translator); Prepare translates PTX ahead of the first load; a Control is the file
// through which a test sets memory limit, seed and link rates and reads counters and reports, in its own process or in a child's. The package
// knows no kernel and nothing of this repository but internal/ptx, and needs no cgo.
package fakecuda

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"aitk/internal/ptx"
)

//go:embed c/*.c c/*.h
var sources embed.FS

// ErrNoCompiler says that gcc or the go command is missing: tests skip with this sentence.
var ErrNoCompiler = errors.New("the fake CUDA driver is built by gcc, which is not installed")

// Lib is a built fake driver.
type Lib struct {
	Path       string // libfakecuda.so
	Translator string // the program that it calls for PTX that is not in the cache
	Cache      string // folder of translated modules
}

// Build compiles the fake into dir, or into a folder of the user's cache if dir is empty. What is there already is used again: files are
// named by the hash of all that made them.
func Build(dir string) (*Lib, error) {
	if _, err := exec.LookPath("gcc"); err != nil {
		return nil, ErrNoCompiler
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = os.TempDir()
		}
		dir = filepath.Join(cache, "aitk-fakecuda")
	}
	version, err := exec.Command("gcc", "-dumpfullversion", "-dumpmachine").Output()
	if err != nil {
		return nil, fmt.Errorf("asking gcc for its version: %w", err)
	}
	driver, err := sourceHash(version)
	if err != nil {
		return nil, err
	}
	translator := fmt.Sprintf("%x", sha256.Sum256([]byte(ptx.Fingerprint()+string(version))))[:16]
	l := &Lib{Path: filepath.Join(dir, "driver-"+driver, "libfakecuda.so"), Translator: filepath.Join(dir, "ptx-"+translator, "ptxc")}
	l.Cache = filepath.Dir(l.Translator)
	for _, d := range []string{filepath.Dir(l.Path), l.Cache} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	if !exists(l.Path) {
		if err := compile(l.Path); err != nil {
			return nil, err
		}
	}
	if !exists(l.Translator) {
		tmp := fmt.Sprintf("%s.%d", l.Translator, os.Getpid())
		c := exec.Command("go", "build", "-o", tmp, "aitk/internal/fakecuda/ptxc")
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building the PTX translator: %w\n%s", err, out)
		}
		if err := os.Rename(tmp, l.Translator); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sourceHash covers the C files, the names of settings, the header and the compiler.
func sourceHash(compiler []byte) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(sources, "c", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := sources.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(b), b)
		return err
	})
	if err != nil {
		return "", err
	}
	fmt.Fprintf(h, "%s%s%s%v", header(), ptx.RuntimeHeader, compiler, driverFlags())
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

func driverFlags() []string {
	return []string{"-std=gnu11", "-O3", "-g1", "-Wall", "-Wextra", "-Wno-unused-function", "-march=native", "-ffp-contract=off", "-fno-math-errno",
		"-fPIC", "-shared", "-fvisibility=hidden", "-pthread"}
}

// compile makes the library in a folder of its own and moves it to path, so that two tests can build at once.
func compile(path string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(path), "build")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	files := map[string][]byte{"fake_names.h": []byte(header()), "ptxrt.h": []byte(ptx.RuntimeHeader)}
	entries, err := sources.ReadDir("c")
	if err != nil {
		return err
	}
	args := append(driverFlags(), "-I", tmp, "-o", filepath.Join(tmp, "lib.so"))
	for _, e := range entries {
		if files[e.Name()], err = sources.ReadFile("c/" + e.Name()); err != nil {
			return err
		}
		if strings.HasSuffix(e.Name(), ".c") {
			args = append(args, filepath.Join(tmp, e.Name()))
		}
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(tmp, name), b, 0o600); err != nil {
			return err
		}
	}
	out, err := exec.Command("gcc", append(args, "-lm", "-ldl")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("compiling the fake driver: %w\n%s", err, out)
	}
	return os.Rename(filepath.Join(tmp, "lib.so"), path)
}

// Prepare translates and compiles PTX texts, several at once, so that the first load of each finds them in the cache. All failures are
// returned.
func (l *Lib) Prepare(texts ...string) error {
	errs := make([]error, len(texts))
	gate := make(chan struct{}, max(1, runtime.NumCPU()))
	var wait sync.WaitGroup
	for i, text := range texts {
		wait.Add(1)
		gate <- struct{}{}
		go func() {
			defer func() { <-gate; wait.Done() }()
			path := filepath.Join(l.Cache, moduleName(text)+".so")
			if !exists(path) {
				errs[i] = Translate(text, path)
			}
		}()
	}
	wait.Wait()
	return errors.Join(errs...)
}

// Translate turns a PTX text into a shared library at path.
func Translate(text, path string) error {
	m, err := ptx.Parse(text)
	if err != nil {
		return err
	}
	if findings := ptx.Lint(m); len(findings) > 0 {
		errs := make([]error, len(findings))
		for i, f := range findings {
			errs[i] = f
		}
		return errors.Join(errs...)
	}
	c, err := ptx.TranslateC(m)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(path), "module")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.WriteFile(filepath.Join(tmp, "ptxrt.h"), []byte(ptx.RuntimeHeader), 0o600); err != nil {
		return err
	}
	args := append(ptx.CFlags(), "-x", "c", "-I", tmp, "-o", filepath.Join(tmp, "module.so"), "-", "-lm")
	gcc := exec.Command("gcc", args...)
	gcc.Stdin = strings.NewReader(c)
	var out bytes.Buffer
	gcc.Stdout, gcc.Stderr = &out, &out
	if err := gcc.Run(); err != nil {
		return fmt.Errorf("compiling translated PTX: %w\n%.2000s", err, out.String())
	}
	return os.Rename(filepath.Join(tmp, "module.so"), path)
}

// moduleName is the name of a text in the cache; api_module.c computes the same.
func moduleName(text string) string {
	a, b := uint64(1469598103934665603), uint64(0x9e3779b97f4a7c15)
	for i := range len(text) {
		a = (a ^ uint64(text[i])) * 1099511628211
		b = (b+uint64(text[i]))*0x100000001b3 ^ b>>31
	}
	return fmt.Sprintf("%016x%016x", a, b)
}
