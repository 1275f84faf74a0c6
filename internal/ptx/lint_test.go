package ptx

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// verdicts: least target, least version, instruction. Where NVIDIA's assembler is on the path, it is asked as well: it must take each line at
// what is said here, and refuse it one step below.
const verdicts = `
50 4.0 add.rn.f32 %f1, %f2, %f3;
50 4.0 mad.wide.u32 %d1, %r1, %r2, %d2;
50 4.0 bfe.u32 %r1, %r2, %r3, %r4;
50 4.0 prmt.b32 %r1, %r2, %r3, %r4;
50 4.0 shf.l.wrap.b32 %r1, %r2, %r3, %r4;
50 4.0 ld.global.nc.f32 %f1, [%d1];
50 4.0 ex2.approx.ftz.f32 %f1, %f2;
50 4.0 bar.sync 0;
50 4.0 bar.arrive 1, 64;
50 4.0 cvt.rn.f16.f32 %h1, %f1;
50 4.3 lop3.b32 %r1, %r2, %r3, %r4, 0xca;
61 5.0 dp4a.s32.u32 %r1, %r2, %r3, %r4;
53 4.2 fma.rn.f16 %h1, %h2, %h3, %h4;
53 4.2 add.f16x2 %r1, %r2, %r3;
53 6.0 neg.f16 %h1, %h2;
53 6.5 abs.f16 %h1, %h2;
60 5.0 red.global.add.f64 [%d1], %g1;
60 6.2 red.global.add.noftz.f16x2 [%d1], %r1;
70 6.3 red.global.add.noftz.f16 [%d1], %h1;
50 6.0 shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;
50 6.0 vote.sync.ballot.b32 %r1, %p1, -1;
50 6.0 bar.warp.sync -1;
50 6.0 barrier.sync 1, 64;
50 6.2 activemask.b32 %r1;
70 6.0 match.any.sync.b32 %r1, %r2, -1;
70 6.0 fence.acq_rel.gpu;
70 6.0 ld.acquire.gpu.global.u32 %r1, [%d1];
70 6.0 st.release.gpu.global.u32 [%d1], %r1;
70 6.0 atom.acq_rel.gpu.global.add.u32 %r1, [%d1], %r2;
70 6.3 nanosleep.u32 100;
75 6.5 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%d1];
75 6.5 ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1, %r2, %r3, %r4}, [%d1];
75 6.5 mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f1, %f2, %f3, %f4};
75 7.0 tanh.approx.f32 %f1, %f2;
75 7.0 ex2.approx.f16x2 %r1, %r2;
80 7.0 mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
80 7.0 mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
80 7.0 mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f1, %f2, %f3, %f4};
80 7.0 mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
80 7.0 mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r1, %r2, %r3, %r4};
80 7.0 cp.async.ca.shared.global [%d1], [%d2], 4;
80 7.0 cp.async.cg.shared.global [%d1], [%d2], 16, %r1;
80 7.0 cp.async.commit_group;
80 7.0 cp.async.wait_group 1;
80 7.0 cvt.rn.bf16.f32 %h1, %f1;
80 7.0 cvt.rn.bf16x2.f32 %r1, %f1, %f2;
80 7.0 cvt.rn.f16x2.f32 %r1, %f1, %f2;
80 7.0 cvt.rna.tf32.f32 %r1, %f1;
80 7.0 fma.rn.bf16x2 %r1, %r2, %r3, %r4;
80 7.0 max.bf16x2 %r1, %r2, %r3;
80 7.0 min.f16 %h1, %h2, %h3;
80 7.0 max.NaN.f32 %f1, %f2, %f3;
80 7.0 redux.sync.add.u32 %r1, %r2, -1;
80 7.4 createpolicy.fractional.L2::evict_last.b64 %d1, 1.0;
70 7.4 ld.global.L1::no_allocate.f32 %f1, [%d1];
75 7.4 ld.global.L2::128B.f32 %f1, [%d1];
89 8.1 cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;
89 8.1 cvt.rn.f16x2.e4m3x2 %r1, %h1;
90 7.8 add.bf16x2 %r1, %r2, %r3;
90 7.8 mul.bf16 %h1, %h2, %h3;
90 7.8 tanh.approx.bf16 %h1, %h2;
90 7.8 ex2.approx.ftz.bf16x2 %r1, %r2;
80 7.1 cvt.f32.bf16 %f1, %h1;
90 7.8 cvt.f64.bf16 %g1, %h1;
90 7.8 cvt.rn.bf16.s32 %h1, %r1;
90 7.8 red.global.add.noftz.bf16x2 [%d1], %r1;
90 7.8 setp.lt.bf16 %p1, %h1, %h2;
90 7.8 cvt.rn.tf32.f32 %r1, %f1;
90 7.8 griddepcontrol.wait;
`

// steps are targets and versions that a text may step down to.
var (
	smSteps = []int{50, 52, 53, 60, 61, 70, 75, 80, 86, 89, 90}
	vSteps  = []Version{{4, 0}, {4, 1}, {4, 2}, {4, 3}, {5, 0}, {6, 0}, {6, 1}, {6, 2}, {6, 3}, {6, 4}, {6, 5}, {7, 0}, {7, 1}, {7, 4}, {7, 8}, {8, 0}, {8, 1}}
)

func moduleWith(sm int, v Version, inst string) string {
	return fmt.Sprintf(".version %s\n.target sm_%d\n.address_size 64\n.visible .entry k()\n{\n\t.reg .pred %%p<4>;\n\t.reg .b16 %%h<8>;\n\t.reg .b32 %%r<8>;\n\t.reg .f32 %%f<8>;\n\t.reg .b64 %%d<8>;\n\t.reg .f64 %%g<8>;\n\t%s\n\tret;\n}\n", v, sm, inst)
}

func TestLintVerdicts(t *testing.T) {
	ptxas, _ := exec.LookPath("ptxas")
	if ptxas == "" {
		t.Log("NVIDIA's ptxas is not on the path: verdicts are not compared with it")
	}
	file := filepath.Join(t.TempDir(), "k.ptx")
	assembles := func(text string, sm int) (bool, string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(ptxas, fmt.Sprintf("-arch=sm_%d", sm), "-o", os.DevNull, file).CombinedOutput()
		return err == nil, string(out)
	}
	for line := range strings.Lines(verdicts) {
		var sm int
		var v Version
		if n, _ := fmt.Sscanf(line, "%d %d.%d", &sm, &v.Major, &v.Minor); n != 3 {
			continue
		}
		inst := strings.TrimSpace(strings.SplitN(line, " ", 3)[2])
		lint := func(sm int, v Version) []*Finding {
			m, err := Parse(moduleWith(sm, v, strings.ReplaceAll(inst, "1.0", "0f3F800000")))
			if err != nil {
				t.Fatalf("%s: %v", inst, err)
			}
			return Lint(m)
		}
		top := v
		if least, _ := leastVersion(sm); v.Less(least) {
			top = least
		}
		if f := lint(sm, top); f != nil {
			t.Errorf("sm_%d, PTX %s: %v", sm, top, f[0])
		}
		if ptxas != "" {
			if ok, out := assembles(moduleWith(sm, top, inst), sm); !ok {
				t.Errorf("ptxas refuses %s at sm_%d, PTX %s: %s", inst, sm, top, out)
			}
		}
		try := func(sm int, v Version, what string) {
			if least, _ := leastVersion(sm); v.Less(least) {
				return // that text is refused for its target already
			}
			if lint(sm, v) == nil {
				t.Errorf("%s passes at sm_%d, PTX %s: one %s too low", inst, sm, v, what)
			}
			if ptxas != "" {
				if ok, _ := assembles(moduleWith(sm, v, inst), sm); ok && !strings.HasPrefix(inst, "nanosleep") {
					t.Errorf("ptxas takes %s at sm_%d, PTX %s", inst, sm, v)
				}
			}
		}
		for k := len(smSteps) - 1; k >= 0; k-- {
			if smSteps[k] < sm {
				try(smSteps[k], top, "target")
				break
			}
		}
		for k := len(vSteps) - 1; k >= 0; k-- {
			if vSteps[k].Less(v) {
				try(sm, vSteps[k], "version")
				break
			}
		}
	}
}

func TestLintFindings(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		m, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range Lint(m) {
			got = append(got, f.Error())
		}
		if s := strings.Join(got, "\n"); s != want {
			t.Errorf("got\n%s\nexpected\n%s", s, want)
		}
	}
	check(moduleWith(80, Version{6, 5}, "ret;"), "ptx line 1: target sm_80 needs PTX 7.0, the text declares 6.5")
	check(moduleWith(75, Version{6, 3}, "{ cp.async.wait_all; }\n\tfrobnicate.u32 %r1, %r2;"),
		"ptx line 12, kernel k: cp.async.wait_all needs target sm_80, the text declares sm_75 and PTX 7.0, the text declares 6.3\nptx line 13, kernel k: frobnicate.u32 is no instruction that is known here")
	m, _ := Parse(moduleWith(80, Version{7, 0}, "tanh.approx.f32 %f1, %f2; shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;"))
	sm, v := Needs(m)
	if sm.SM != 75 || v.Version != (Version{7, 0}) || v.Why != "tanh.approx.f32" {
		t.Errorf("needs %v and %v", sm, v)
	}
}
