package scalar_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dmir/compile/llvm/scalar"
	"dmir/dialect/types"
	"dmir/testkit/need"
)

// TestVectors checks that loops over operations become code on vectors, without calls, on one of two processors in turn.
func TestVectors(t *testing.T) {
	f32 := types.F32
	all := []single{
		operation("add", "", f32, f32, f32), operation("max", "", f32, f32, f32), operation("min", "", f32, f32, f32),
		operation("div", "", f32, f32, f32), operation("relu", "", f32, f32), operation("abs", "", f32, f32),
		operation("sqrt", "", f32, f32), operation("sign", "", f32, f32), operation("floor", "", f32, f32),
		operation("round", "", f32, f32), operation("round_half_away", "", f32, f32),
		operation("clamp", "", f32, f32, f32, f32), operation("select", "", f32, types.I1, f32, f32), operation("compare", "lt", types.I1, f32, f32),
		operation("add", "", types.BF16, types.BF16, types.BF16), operation("exp", "", types.BF16, types.BF16),
		operation("add", "", types.F16, types.F16, types.F16), operation("exp", "", types.F16, types.F16),
		operation("neg", "", types.F16, types.F16), operation("floor", "", types.F16, types.F16), operation("compare", "lt", types.I1, types.F16, types.F16),
		operation("add", "", types.I32, types.I32, types.I32), operation("max", "", types.UI8, types.UI8, types.UI8),
		operation("shift_left", "", types.I32, types.I32, types.I32), operation("popcnt", "", types.I32, types.I32),
		operation("count_leading_zeros", "", types.I32, types.I32),
		operation("pow", "", f32, f32, f32),
	}
	for _, from := range conversions {
		for _, to := range conversions {
			if from != to && (from.IsFloat() || !scalar.Register(from).Equal(scalar.Register(to))) { // others are copies
				all = append(all, operation("convert", "", to, from))
			}
		}
	}
	for _, f := range fast {
		all = append(all, operation(f.name, f.kind, f32, f32))
	}
	wide, call := regexp.MustCompile(`%[yz]mm|ps[xy]\b`), regexp.MustCompile(`\bcallq?\s+\S+`)
	for i, arch := range []string{"x86-64-v4", "x86-64-v3"} {
		if !need.Turn(t, i, 2) {
			continue
		}
		file := filepath.Join(t.TempDir(), "a.s")
		clang(t, module(all), file, "-march="+arch, "-S")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bodies := strings.Split(string(text), "@function\n")[1:]
		for k, s := range all {
			if arch == "x86-64-v3" && s.x.Op == "convert" && wholeOf64(s.x.Args[0].Elem) {
				continue // which has no vectors of these
			}
			if !wide.MatchString(bodies[k]) || call.MatchString(bodies[k]) {
				t.Errorf("%s for %s has no vectors, or calls %q", s.name, arch, call.FindString(bodies[k]))
			}
		}
	}
}

func wholeOf64(e types.Elem) bool { return e.IsInt() && e.Bytes() == 8 }

// TestVerified lets LLVM verify the module of all operations.
func TestVerified(t *testing.T) {
	opt := need.Tool(t, "opt", "apt-get install llvm")
	file := filepath.Join(t.TempDir(), "a.ll")
	if err := os.WriteFile(file, []byte(module(registered()).String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(opt, "-passes=verify", "-disable-output", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%.4000s", err, out)
	}
}

var conversions = []types.Elem{types.F64, types.F32, types.F16, types.BF16, types.F8E4M3FN, types.F8E5M2, types.I64, types.I32, types.I8, types.I1, types.UI64, types.UI32, types.UI8}
