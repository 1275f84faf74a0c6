package plan_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
)

func marshal(t testing.TB, p *plan.Plan) []byte {
	t.Helper()
	data, err := plan.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRoundTrip(t *testing.T) {
	for _, p := range []*plan.Plan{{}, chainPlan(1, ""), chainPlan(9, "\xff\"<&>\x00é")} {
		data := marshal(t, p)
		q, err := plan.Unmarshal(data, vocabulary())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p, q) {
			t.Errorf("a plan of %d buffers came back changed", len(p.Buffers))
		}
		if again := marshal(t, q); !bytes.Equal(data, again) {
			t.Error("the bytes of a plan read back differ")
		}
		h, err := plan.ReadHeader(data[:min(len(data), 400)])
		if err != nil {
			t.Fatal(err)
		}
		want := &plan.Header{Tool: p.Tool, Model: p.Model, GraphSum: p.GraphSum, Options: p.Options, Dims: p.Dims, Profile: p.Profile, Arenas: p.Arenas}
		if !reflect.DeepEqual(h, want) {
			t.Errorf("header %+v, want %+v", h, want)
		}
	}
}

func TestEveryFieldIsInTheFile(t *testing.T) {
	base := chainPlan(3, "")
	for i, v := range numbers(reflect.ValueOf(base), nil) {
		before := v.Interface()
		switch v.Kind() {
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.String:
			v.SetString(v.String() + "+")
		case reflect.Float64:
			v.SetFloat(v.Float() + 0.5)
		case reflect.Uint8, reflect.Uint64:
			v.SetUint(v.Uint() ^ 1)
		default:
			v.SetInt(v.Int() + 1)
		}
		if data, err := plan.Marshal(base); err == nil {
			q, err := plan.Unmarshal(data, vocabulary())
			if err != nil || !reflect.DeepEqual(base, q) {
				t.Errorf("field %d (%v) is lost: %v", i, v.Type(), err)
			}
		}
		v.Set(reflect.ValueOf(before))
	}
}

// numbers lists every scalar of a plan, ops' attributes aside.
func numbers(v reflect.Value, out []reflect.Value) []reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out = numbers(v.Elem(), out)
		}
	case reflect.Interface:
		if !v.IsNil() && v.Elem().Kind() == reflect.Pointer {
			out = numbers(v.Elem(), out)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			out = numbers(v.Field(i), out)
		}
	case reflect.Slice:
		for i := range v.Len() {
			out = numbers(v.Index(i), out)
		}
	default:
		out = append(out, v)
	}
	return out
}

func TestDamagedFilesAreRefused(t *testing.T) {
	good := marshal(t, chainPlan(2, ""))
	refused := func(name string, data []byte, word string) {
		t.Helper()
		if _, err := plan.Unmarshal(data, vocabulary()); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, want %q", name, err, word)
		}
	}
	for n := range len(good) {
		if _, err := plan.Unmarshal(good[:n], vocabulary()); err == nil {
			t.Fatalf("truncated to %d of %d bytes: accepted", n, len(good))
		}
	}
	for i := range good {
		bad := slices.Clone(good)
		bad[i] ^= 1 << (i % 8)
		if _, err := plan.Unmarshal(bad, vocabulary()); err == nil {
			t.Fatalf("bit %d of byte %d flipped: accepted", i%8, i)
		}
	}
	refused("empty", nil, "not a plan file")
	refused("another file", []byte("PK\x03\x04 something else entirely"), "not a plan file")
	refused("half", good[:len(good)/2], "truncated")
	refused("longer", append(slices.Clone(good), 0), "1 bytes after its end")
	flipped := slices.Clone(good)
	flipped[len(good)/2] ^= 4
	refused("flipped", flipped, "checksum")
	newer := slices.Clone(good)
	binary.LittleEndian.PutUint32(newer[8:], 2)
	refused("newer", newer, "version 2")
	if _, err := plan.Unmarshal(good, ir.Vocabulary{}); err == nil || !strings.Contains(err.Error(), "unknown operation") {
		t.Errorf("unknown op: %v", err)
	}
}

// reseal gives a file whose sections were changed a good prefix and checksum.
func reseal(head, body []byte) []byte {
	out := append([]byte("aitkplan"), 1, 0, 0, 0)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(head)))
	out = binary.LittleEndian.AppendUint64(out, uint64(len(body)))
	out = append(append(out, head...), body...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

func split(data []byte) (head, body []byte) {
	h := binary.LittleEndian.Uint32(data[12:])
	return data[24 : 24+h], data[24+h : len(data)-sha256.Size]
}

func TestOnlyCanonicalFiles(t *testing.T) {
	head, body := split(marshal(t, chainPlan(2, "")))
	if _, err := plan.Unmarshal(reseal(head, body), vocabulary()); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"unknown field":  reseal(head, append(slices.Clone(body), 0xf8, 0x07, 1)),
		"unused type":    reseal(head, append(slices.Clone(body), 0x0a, 0x02, 0x08, 0x01)),
		"no body":        reseal(head, nil),
		"body is noise":  reseal(head, bytes.Repeat([]byte{0xff}, 50)),
		"huge length":    reseal(head, []byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x07}),
		"header's noise": reseal([]byte{0x0a, 0xff, 0xff}, body),
	} {
		if _, err := plan.Unmarshal(data, vocabulary()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestDeclaredSizesCostNothing(t *testing.T) {
	huge := append([]byte("aitkplan"), 1, 0, 0, 0)
	huge = binary.LittleEndian.AppendUint32(huge, 1<<31)
	huge = binary.LittleEndian.AppendUint64(huge, 1<<40)
	files := [][]byte{append(huge, make([]byte, 60)...), reseal(nil, []byte{0x0a, 0x80, 0x80, 0x80, 0x80, 0x04}), reseal(nil, []byte{0x3a, 0x84, 0x80, 0x80, 0x7f, 0x6a})}
	for i, data := range files {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := plan.Unmarshal(data, vocabulary())
		_, _ = plan.ReadHeader(data)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; err == nil || grown > 1<<20 {
			t.Errorf("file %d: %v, %d bytes allocated", i, err, grown)
		}
	}
}

func TestMarshalRefusesWhatCannotBeRead(t *testing.T) {
	for name, wreck := range map[string]func(p *plan.Plan){
		"buffer":  func(p *plan.Plan) { p.Programs[1].Exit[0].Buffer = 999 },
		"wait":    func(p *plan.Plan) { p.Programs[0].Instrs[0] = &plan.Wait{On: 77} },
		"nothing": func(p *plan.Plan) { p.Programs[0].Instrs[0] = nil },
		"symbol":  func(p *plan.Plan) { p.Buffers[0].Holds = 999 },
		"shape":   func(p *plan.Plan) { p.Buffers[0].Type = ir.T(ir.F32, -1) },
		"span":    func(p *plan.Plan) { p.Buffers[0].Live[0].End = 999 },
		"alive":   func(p *plan.Plan) { p.Report.Phases = []plan.PhasePeak{{Alive: []plan.BufferID{-3}}} },
	} {
		p := chainPlan(2, "")
		wreck(p)
		if _, err := plan.Marshal(p); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzUnmarshal: no file makes the reader panic, and what it accepts is written back as it was. The fuzzer's bytes stand for the two
// sections, so that it gets past the checksum.
func FuzzUnmarshal(f *testing.F) {
	for _, n := range []int{1, 3} {
		data := marshal(f, chainPlan(n, ""))
		head, body := split(data)
		f.Add(head, body)
	}
	f.Fuzz(func(t *testing.T, head, body []byte) {
		data := reseal(head, body)
		p, err := plan.Unmarshal(data, vocabulary())
		if err == nil && !bytes.Equal(marshal(t, p), data) {
			t.Error("accepted a file that is written otherwise")
		}
		_, _ = plan.Unmarshal(body, vocabulary())
		_, _ = plan.ReadHeader(body)
	})
}
