package weights

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aitk/ir"
)

// write makes a file of n bytes that all differ from their neighbours.
func write(t *testing.T, n int) (path string, raw []byte) {
	t.Helper()
	raw = make([]byte, n)
	for i := range raw {
		raw[i] = byte(i*7 + i/256)
	}
	path = filepath.Join(t.TempDir(), "w.bin")
	if err := os.WriteFile(path, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	return path, raw
}

func sum(raw []byte) string {
	s := sha256.Sum256(raw)
	return hex.EncodeToString(s[:])
}

// inStretches reads a parameter n bytes at a time.
func inStretches(r *Reader, t ir.Type, in *ir.Init, n int64) ([]byte, error) {
	var all []byte
	for at := int64(0); at < t.Bytes(); at += n {
		dst := make([]byte, min(n, t.Bytes()-at))
		if err := r.ReadAt("p", t, in, dst, at); err != nil {
			return nil, err
		}
		all = append(all, dst...)
	}
	return all, nil
}

func TestContent(t *testing.T) {
	path, raw := write(t, 4000)
	transposed := func(raw []byte, rows, cols, size int) []byte { // of the stored [cols, rows]
		out := make([]byte, 0, len(raw))
		for r := range rows {
			for c := range cols {
				out = append(out, raw[(c*rows+r)*size:][:size]...)
			}
		}
		return out
	}
	tensor := func(ty ir.Type, x float64) []byte {
		v := ir.NewTensor(ty)
		for i := range v.F {
			v.F[i] = x
		}
		for i := range v.I {
			v.I[i] = int64(x)
		}
		return v.Encode()
	}
	big := ir.T(ir.F32, 40, 20)
	cases := []struct {
		name string
		t    ir.Type
		in   ir.Init
		want []byte
	}{
		{"zero", ir.T(ir.F32, 3), ir.Init{}, make([]byte, 12)},
		{"fill f32", ir.T(ir.F32, 5), ir.Init{Kind: ir.InitFill, Fill: 1.1}, tensor(ir.T(ir.F32, 5), 1.1)},
		{"fill bf16", ir.T(ir.BF16, 5), ir.Init{Kind: ir.InitFill, Fill: 1.1}, tensor(ir.T(ir.BF16, 5), 1.1)},
		{"fill i4", ir.T(ir.I4, 5), ir.Init{Kind: ir.InitFill, Fill: -3}, tensor(ir.T(ir.I4, 5), -3)},
		{"literal", ir.T(ir.U8, 4), ir.Init{Kind: ir.InitLiteral, Literal: []byte{1, 2, 3, 4}}, []byte{1, 2, 3, 4}},
		{"file", big, ir.Init{Kind: ir.InitFile, File: ir.Location{Path: path, Offset: 100, Bytes: 3200}}, raw[100:3300]},
		{"file, digest", big, ir.Init{Kind: ir.InitFile, File: ir.Location{Path: path, Offset: 100, Bytes: 3200, SHA256: sum(raw[100:3300])}}, raw[100:3300]},
		{"transposed", big, ir.Init{Kind: ir.InitFile, File: ir.Location{Path: path, Offset: 100, Bytes: 3200, Transposed: true}},
			transposed(raw[100:3300], 40, 20, 4)},
		{"transposed, digest", ir.T(ir.F16, 3, 7), ir.Init{Kind: ir.InitFile, File: ir.Location{Path: path, Bytes: 42, Transposed: true, SHA256: sum(raw[:42])}},
			transposed(raw[:42], 3, 7, 2)},
		{"empty", ir.T(ir.F32, 0, 4), ir.Init{Kind: ir.InitFile, File: ir.Location{Path: path, Offset: 4000, Transposed: true, SHA256: sum(nil)}}, []byte{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range []int64{1, 3, 4, 64, 100, 5000} {
				r := NewReader()
				got, err := inStretches(r, c.t, &c.in, n)
				if err != nil || !bytes.Equal(got, c.want) {
					t.Errorf("in stretches of %d: %v\n%v\n%v", n, err, got, c.want)
				}
				r.Close()
			}
			r := NewReader()
			defer r.Close()
			if got, err := r.Bytes("p", c.t, &c.in); err != nil || !bytes.Equal(got, c.want) {
				t.Errorf("whole: %v, %v", got, err)
			}
			want := sum(c.want)
			if c.in.Kind == ir.InitFile { // as stored
				want = sum(raw[c.in.File.Offset:][:c.in.File.Bytes])
			}
			if got, err := r.SHA256("p", c.t, &c.in); err != nil || got != want {
				t.Errorf("digest %s, %v", got, err)
			}
		})
	}
}

// TestTransposedLarge crosses blocks and takes the way of single segments.
func TestTransposedLarge(t *testing.T) {
	const rows, cols = 3000, 700
	path, raw := write(t, rows*cols*2)
	ty := ir.T(ir.F16, rows, cols)
	in := ir.Init{Kind: ir.InitFile, File: ir.Location{Path: path, Bytes: ty.Bytes(), Transposed: true}}
	r := NewReader()
	defer r.Close()
	for _, n := range []int64{ty.Bytes(), 700 * 2 * 2100, 999_999, 300_000} {
		got, err := inStretches(r, ty, &in, n)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			for j := range cols {
				if !bytes.Equal(got[(i*cols+j)*2:][:2], raw[(j*rows+i)*2:][:2]) {
					t.Fatalf("stretches of %d: element %d,%d", n, i, j)
				}
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	path, raw := write(t, 64)
	u8 := ir.T(ir.U8, 32)
	at := func(off int64, sha string) ir.Init {
		return ir.Init{Kind: ir.InitFile, File: ir.Location{Path: path, Offset: off, Bytes: 32, SHA256: sha}}
	}
	wrong, flipped := sum([]byte("x")), at(0, sum(raw[:32]))
	missing := at(0, "")
	missing.File.Path += "-missing"
	folder := at(0, "")
	folder.File.Path = filepath.Dir(path)
	tr := at(0, wrong)
	tr.File.Transposed = true
	cases := []struct {
		name, want string
		t          ir.Type
		in         ir.Init
	}{
		{"absent", "--weights", u8, ir.Init{Kind: ir.InitAbsent}},
		{"unknown", "unknown kind 99", u8, ir.Init{Kind: 99}},
		{"literal", "its literal has 1", u8, ir.Init{Kind: ir.InitLiteral, Literal: []byte{1}}},
		{"size", "needs 128 bytes", ir.T(ir.F32, 32), at(0, "")},
		{"end", "64 bytes, 32 at 33 are outside", u8, at(33, "")},
		{"negative", "outside", u8, at(-1, "")},
		{"far", "outside", u8, at(1<<62, "")},
		{"missing", "no such file", u8, missing},
		{"folder", "not a regular file", u8, folder},
		{"digest", path + " holds other bytes", u8, at(0, wrong)},
		{"digest of transposed", "holds other bytes", ir.T(ir.U8, 4, 8), tr},
		{"transposed vector", "cannot be stored transposed", u8, tr},
		{"fraction", "cannot be filled with 1.5", u8, ir.Init{Kind: ir.InitFill, Fill: 1.5}},
		{"shape", "too large", ir.T(ir.F32, 1<<40, 1<<40), ir.Init{}},
		{"control", "", u8, flipped},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader()
			defer r.Close()
			_, err := r.Bytes("p", c.t, &c.in)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `parameter "p"`) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	r := NewReader()
	defer r.Close()
	for _, off := range []int64{-1, 1, 33} {
		if err := r.ReadAt("p", u8, &flipped, make([]byte, 32), off); err == nil || !strings.Contains(err.Error(), "outside") {
			t.Errorf("offset %d: %v", off, err)
		}
	}
	// A read that begins in the middle is checked before it is served.
	bad := at(0, wrong)
	if err := r.ReadAt("q", u8, &bad, make([]byte, 4), 8); err == nil {
		t.Error("served bytes that the digest disproves")
	}
}

func TestOpenFilesAreBounded(t *testing.T) {
	dir, r := t.TempDir(), NewReader()
	for i := range 3 * maxOpen {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, []byte{byte(i)}, 0o666); err != nil {
			t.Fatal(err)
		}
		in := ir.Init{Kind: ir.InitFile, File: ir.Location{Path: path, Bytes: 1}}
		if got, err := r.Bytes(fmt.Sprint(i), ir.T(ir.U8, 1), &in); err != nil || got[0] != byte(i) {
			t.Fatal(got, err)
		}
	}
	if n := len(r.files.list); n != maxOpen {
		t.Errorf("%d files are open", n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
