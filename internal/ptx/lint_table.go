package ptx

import "strings"

// table lists what the instruction set's versions brought: opcodes, then modifiers that must all be there, then target and version. A line with
// an opcode alone makes it known; .a.b stands for two modifiers at the end. Source: the notes under each instruction in the public PTX
// reference. lint_test.go compares verdicts with NVIDIA's ptxas where that is installed; where it is laxer (nanosleep), the reference counts.
const table = `
mov ld st add sub mul mad mul24 mad24 sad div rem abs neg min max and or xor not cnot shl shr set setp selp slct bra ret exit cvt = 20 1.0
trap brkpt pmevent tex membar atom red vote = 20 1.2
rcp sqrt rsqrt sin cos lg2 ex2 bar = 20 1.0
fma cvta isspacep ldu prefetch prefetchu popc clz brev bfind bfe bfi prmt copysign testp addc subc = 20 2.0
madc = 20 3.0
shf = 32 3.1
lop3 = 50 4.3
dp4a dp2a = 61 5.0
tanh = 75 7.0
brx = 30 6.0
barrier = 30 6.0
fns = 30 6.0
shfl = 30 3.0
shfl vote .sync = 30 6.0
match = 70 6.0
bar .warp = 30 6.0
fence = 70 6.0
activemask = 30 6.2
nanosleep = 70 6.3
redux = 80 7.0
mma ldmatrix cp = 70 6.4
ldmatrix = 75 6.5
mma .m16n8k8 = 75 6.5
mma .m16n8k16 = 80 7.0
mma .m16n8k4 = 80 7.0
mma .m16n8k32 = 80 7.0
mma .m16n8k64 = 80 7.0
mma .bf16 = 80 7.0
mma .tf32 = 80 7.0
mma .f64 = 80 7.0
mma .e4m3 = 89 8.4
mma .e5m2 = 89 8.4
cp .async = 80 7.0
cp .async .bulk = 90 8.0
stmatrix = 90 7.8
movmatrix = 75 7.8
mbarrier = 80 7.0
createpolicy = 80 7.4
discard applypriority = 80 7.4
bmsk szext = 70 7.6
elect = 90 8.0
griddepcontrol = 90 7.8

ld .nc = 32 3.1
ld st .relaxed = 70 6.0
ld .acquire = 70 6.0
st .release = 70 6.0
ld st .L1::* = 70 7.4
ld .L2::* = 75 7.4
ld st .v8 = 100 8.8
ld .shared::cta = 30 7.8
st .shared::cta = 30 7.8
ld st .b128 = 70 8.3
ld st .mmio = 70 8.2
prefetch .L2::* = 80 7.4
membar .sys = 20 2.0

cvt .f16x2 = 80 7.0
cvt .bf16 = 80 7.0
cvt .bf16x2 = 80 7.0
cvt .f32.bf16 = 80 7.1
cvt .bf16 .u8 = 90 7.8
cvt .bf16 .s8 = 90 7.8
cvt .bf16 .u16 = 90 7.8
cvt .bf16 .s16 = 90 7.8
cvt .bf16 .u32 = 90 7.8
cvt .bf16 .s32 = 90 7.8
cvt .bf16 .u64 = 90 7.8
cvt .bf16 .s64 = 90 7.8
cvt .bf16 .f16 = 90 7.8
cvt .bf16 .f64 = 90 7.8
cvt .bf16.bf16 = 90 7.8
cvt .tf32 = 80 7.0
cvt .tf32 .rn = 90 7.8
cvt .tf32 .rz = 90 7.8
cvt .relu = 80 7.0
cvt .e4m3x2 = 89 8.1
cvt .e5m2x2 = 89 8.1
add sub mul .f16 = 53 4.2
add sub mul .f16x2 = 53 4.2
fma .f16 = 53 4.2
fma .f16x2 = 53 4.2
neg .f16 = 53 6.0
neg .f16x2 = 53 6.0
abs .f16 = 53 6.5
abs .f16x2 = 53 6.5
set setp .f16 = 53 4.2
set setp .f16x2 = 53 4.2
min max .f16 = 80 7.0
min max .f16x2 = 80 7.0
min max .NaN = 80 7.0
fma .relu = 80 7.0
ex2 .f16 = 75 7.0
ex2 .f16x2 = 75 7.0
tanh .bf16 = 90 7.8
tanh .bf16x2 = 90 7.8
ex2 .bf16 = 90 7.8
ex2 .bf16x2 = 90 7.8
fma neg abs min max .bf16 = 80 7.0
fma neg abs min max .bf16x2 = 80 7.0
add sub mul .bf16 = 90 7.8
add sub mul .bf16x2 = 90 7.8
set setp .bf16 = 90 7.8
set setp .bf16x2 = 90 7.8
add sub .s16x2 = 90 8.0
add sub .u16x2 = 90 8.0
min max .s16x2 = 90 8.0
min max .u16x2 = 90 8.0
add sub mul fma .f32x2 = 100 8.6

atom red .f64 = 60 5.0
atom red .f16x2 = 60 6.2
atom red .f16 = 70 6.3
atom red .bf16 = 90 7.8
atom red .bf16x2 = 90 7.8
atom .b16 = 70 6.3
atom .b128 = 90 8.3
atom red .cluster = 90 7.8
atom red .relaxed = 70 6.0
atom red .acquire = 70 6.0
atom red .release = 70 6.0
atom red .acq_rel = 70 6.0
atom red .v2 = 90 8.1
atom red .v4 = 90 8.1
atom red .v8 = 90 8.1
atom red .cta = 60 5.0
atom red .gpu = 60 5.0
atom red .sys = 60 5.0
redux .f32 = 100 8.6
`

// rules reads the table.
func rules() []rule {
	var out []rule
	for line := range strings.Lines(table) {
		left, right, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		r := rule{}
		for _, w := range strings.Fields(left) {
			if m, ok := strings.CutPrefix(w, "."); ok {
				r.mods = append(r.mods, m)
			} else {
				r.opcodes = append(r.opcodes, w)
			}
		}
		need := strings.Fields(right)
		for _, c := range need[0] {
			r.sm = r.sm*10 + int(c-'0')
		}
		major, minor, _ := strings.Cut(need[1], ".")
		r.version = Version{int(major[0] - '0'), int(minor[0] - '0')}
		r.names = r.mods == nil
		out = append(out, r)
	}
	return out
}
