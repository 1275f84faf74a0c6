// Package safetensors reads and writes the safetensors container: a JSON header that names tensors and byte ranges, then the bytes.
// It knows element types and shapes, but neither models, parameters nor checkpoints.
//
// Reading is lazy and bounded. Open reads the header alone; a tensor's bytes are read when asked for, into memory of the caller. Nothing
// is allocated because a file declares it: the header's length is held against MaxHeaderBytes and the file's size first, every range
// against the file's size and the tensor's shape.
//
// Writing is atomic. A Writer fills a temporary file beside the target; Commit makes it durable and renames it. Until then, and after
// any failure, the target is what it was before. The same tensors and metadata give the same bytes.
//
// Invariants of every file that Open accepts: names are unique, ranges neither overlap nor leave holes and end where the file ends,
// each range is exactly as long as dtype and shape say.
package safetensors

import (
	"slices"

	"aitk/ir"
)

// MaxHeaderBytes is the longest header that is read; longer ones are refused unread.
const MaxHeaderBytes = 100_000_000

// metadataKey is the header entry that holds free text instead of a tensor.
const metadataKey = "__metadata__"

// Spec names a tensor and its type; its Space is ir.Device and has no meaning here.
type Spec struct {
	Name string
	Type ir.Type
}

// Info is a tensor of a file: Offset counts from the start of the file, so that an ir.Location can name the same bytes.
type Info struct {
	Spec
	Offset int64
	Bytes  int64
}

// dtypes pairs the container's names with ours. Names not listed (F8_E4M3, C64, ...) are refused by Open.
var dtypes = []struct {
	name  string
	dtype ir.DType
}{
	{"F64", ir.F64}, {"F32", ir.F32}, {"F16", ir.F16}, {"BF16", ir.BF16},
	{"I64", ir.I64}, {"I32", ir.I32}, {"I8", ir.I8}, {"U8", ir.U8}, {"BOOL", ir.Bool},
}

func dtypeOf(name string) (ir.DType, bool) {
	for _, d := range dtypes {
		if d.name == name {
			return d.dtype, true
		}
	}
	return ir.Invalid, false
}

func nameOf(d ir.DType) (string, bool) {
	for _, e := range dtypes {
		if e.dtype == d {
			return e.name, true
		}
	}
	return "", false
}

// supported lists the container's names of the element types that are read and written.
func supported() []string {
	names := make([]string, len(dtypes))
	for i, d := range dtypes {
		names[i] = d.name
	}
	slices.Sort(names)
	return names
}
