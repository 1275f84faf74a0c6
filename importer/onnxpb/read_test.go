package onnxpb

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

func sample() *ModelProto {
	return &ModelProto{IrVersion: proto.Int64(8), DocString: proto.String("prose"), Graph: &GraphProto{
		Node: []*NodeProto{{OpType: proto.String("X"), Input: []string{"a", ""}, Attribute: []*AttributeProto{
			{Name: proto.String("f"), F: proto.Float32(0.5)}, {Name: proto.String("i"), Ints: []int64{1, -2}}, {Name: proto.String("s"), S: []byte{0xff}}}}},
		Initializer: []*TensorProto{
			{Name: proto.String("small"), Dims: []int64{3}, RawData: []byte("abc")},
			{Name: proto.String("large"), Dims: []int64{5000}, RawData: bytes.Repeat([]byte("xyzw!"), 1000)},
			{Name: proto.String("typed"), FloatData: []float32{1, 2}, Int64Data: []int64{-1}, DoubleData: []float64{3}},
		}}}
}

// TestRead: everything survives but prose and the raw data of tensors, which is located.
func TestRead(t *testing.T) {
	raw, err := proto.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(bytes.NewReader(raw), int64(len(raw)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := sample()
	want.DocString = nil
	for i, p := range got.Graph.Initializer[:2] {
		data := want.Graph.Initializer[i].RawData
		if at := p.GetRawOffset(); p.GetRawBytes() != int64(len(data)) || !bytes.Equal(raw[at:at+p.GetRawBytes()], data) {
			t.Errorf("%s lies at %d, %d bytes", p.GetName(), at, p.GetRawBytes())
		}
		p.RawOffset, p.RawBytes = nil, nil
		want.Graph.Initializer[i].RawData = nil
	}
	if !proto.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// TestReadDrops: unknown fields are dropped, and our own fields cannot be set from outside.
func TestReadDrops(t *testing.T) {
	tensor := protowire.AppendVarint(protowire.AppendTag(nil, 1001, protowire.VarintType), 7)
	tensor = protowire.AppendFixed32(protowire.AppendTag(tensor, 500, protowire.Fixed32Type), 7)
	tensor = protowire.AppendBytes(protowire.AppendTag(tensor, 501, protowire.BytesType), []byte("junk"))
	graph := protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), tensor)
	raw := protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), graph)
	m, err := Read(bytes.NewReader(raw), int64(len(raw)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if p := m.Graph.Initializer[0]; p.RawOffset != nil || len(p.ProtoReflect().GetUnknown()) != 0 {
		t.Errorf("%v", p)
	}
}

func TestLimits(t *testing.T) {
	raw, err := proto.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limits Limits
		want   string
	}{
		{Limits{Depth: 2}, "nest deeper than 2"},
		{Limits{Messages: 4}, "more than 4 messages"},
		{Limits{SkeletonBytes: 50}, "more than 50 bytes"},
	} {
		if _, err := Read(bytes.NewReader(raw), int64(len(raw)), c.limits); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.limits, err, c.want)
		}
	}
}

// TestReadCostsNothing: what a file declares is not what is allocated for it.
func TestReadCostsNothing(t *testing.T) {
	raw := protowire.AppendVarint([]byte{0x3a}, 1<<31)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Read(bytes.NewReader(raw), int64(len(raw)), Limits{}); err == nil {
		t.Fatal("accepted")
	}
	runtime.ReadMemStats(&after)
	allocs := after.TotalAlloc - before.TotalAlloc
	if allocs > 1<<18 {
		t.Errorf("%d bytes for a file of %d", allocs, len(raw))
	}
}
