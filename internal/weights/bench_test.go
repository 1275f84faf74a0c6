package weights

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"aitk/internal/quant"
	"aitk/ir"
)

// BenchmarkPackTwoGigabytes packs a file of 2 GB as program init does, in stretches of a staging buffer, and holds the process to 500 MB. The
// format is the one whose scales take most.
//
//	go test ./internal/weights -run '^$' -bench TwoGigabytes -benchtime 1x
func BenchmarkPackTwoGigabytes(b *testing.B) {
	const tensors, rows, cols, staging = 8, 8192, 8192, 8 << 20
	path := filepath.Join(b.TempDir(), "weights.bin")
	writeFloats(b, path, tensors*rows*cols)
	typ := ir.T(ir.F32, rows, cols)
	b.SetBytes(tensors * typ.Bytes())
	for b.Loop() {
		r := NewReader()
		dst := make([]byte, staging)
		for i := range int64(tensors) {
			in := ir.Init{Kind: ir.InitFile, File: ir.Location{Path: path, Offset: i * typ.Bytes(), Bytes: typ.Bytes()}}
			in.Pack = ir.Packing{Source: typ, Format: string(quant.NF4), Axis: 1, Block: 32}
			s, err := quant.SchemeOf(&in.Pack)
			if err != nil {
				b.Fatal(err)
			}
			for _, part := range s.Parts() {
				in.Pack.Part = part
				t, err := quant.PartType(&s, part)
				if err != nil {
					b.Fatal(err)
				}
				for at := int64(0); at < t.Bytes(); at += staging {
					if err := r.ReadAt(fmt.Sprint(i, part), t, &in, dst[:min(staging, t.Bytes()-at)], at); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		r.Close()
	}
	peak := residentPeak(b)
	b.ReportMetric(float64(peak)/1e6, "MB-resident")
	if peak > 500e6 {
		b.Errorf("%d bytes of memory were resident", peak)
	}
}

func writeFloats(b *testing.B, path string, n int) {
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var block []byte
	for i := range 1 << 18 {
		block = binary.LittleEndian.AppendUint32(block, math.Float32bits(float32(math.Sin(float64(i)*0.7))*0.02))
	}
	for at := 0; at < 4*n; at += len(block) {
		if _, err := f.Write(block); err != nil {
			b.Fatal(err)
		}
	}
}

// residentPeak is the most memory that the process has had.
func residentPeak(b *testing.B) int64 {
	if runtime.GOOS != "linux" {
		b.Skip("only Linux says how much memory was resident")
	}
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(raw)); s.Scan(); {
		var kB int64
		if _, err := fmt.Sscanf(s.Text(), "VmHWM: %d kB", &kB); err == nil && strings.HasPrefix(s.Text(), "VmHWM") {
			return kB << 10
		}
	}
	b.Fatal("no VmHWM")
	return 0
}
