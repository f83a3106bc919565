package llvm_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/native"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

func needClang(t testing.TB) *native.Clang {
	t.Helper()
	c, err := native.Find(t.Context())
	need.OK(t, err)
	return c
}

// programs are the texts of testdata, by name.
func programs(t testing.TB, patterns ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files (%v)", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
			if body, ok := strings.CutPrefix(string(text), "-- program.dmir --\n"); ok {
				text = []byte(strings.Split(body, "\n-- kernels.ll --")[0] + "\n")
			}
			out[name] = string(text)
		}
	}
	return out
}

// sanitized is the flags of clang for programs that sanitizers watch.
var sanitized = []string{"-O1", "-g", "-std=gnu11", "-w", "-march=" + arch, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"}

// watchedRuntime is the runtime as an object, which does not depend on the program p and takes longer than most kernels.
func watchedRuntime(t testing.TB, p *artifact.Program) (path string) {
	t.Helper()
	dir := sources(t, p)
	watched(t, dir, "-c", "runtime.c", "-o", "runtime.o")
	return filepath.Join(dir, "runtime.o")
}

// sources is a folder with the files of p, whose kernels the sanitizer of addresses watches.
func sources(t testing.TB, p *artifact.Program) (dir string) {
	t.Helper()
	files, err := native.Sources(p)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for name, text := range files {
		if name == "kernels.ll" {
			text = []byte(defined.ReplaceAllString(string(text), "$1 sanitize_address"))
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// linked is p with a C program that gives each input memory of its own size.
func linked(t testing.TB, p *artifact.Program, runtime string) (path string) {
	t.Helper()
	main, err := filepath.Abs("../../examples/embed/embed.c")
	if err != nil {
		t.Fatal(err)
	}
	dir := sources(t, p)
	watched(t, dir, "-I", dir, "-o", "main", "kernels.ll", "program.c", runtime, main, "-lm", "-lpthread")
	return filepath.Join(dir, "main")
}

// watched runs clang in dir for sanitizers.
func watched(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command(needClang(t).Path, append(slices.Clone(sanitized), args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if bytes.Contains(out, []byte("libclang_rt")) {
		need.OK(t, errors.New("the libraries of clang's sanitizers are not installed (apt-get install libclang-rt-14-dev, of clang's version)"))
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// defined matches a definition up to its attributes.
var defined = regexp.MustCompile(`(?m)^(define .* nounwind)`)

// The sanitizers of addresses and of undefined behaviour find nothing in kernels and in
// the runtime.
func TestSanitized(t *testing.T) {
	need.Long(t)
	if host, _ := native.Host(); host < arch { // levels are in the order of their names
		need.OK(t, fmt.Errorf("this processor is of the level %s, below %s", host, arch))
	}
	texts := programs(t, "testdata/*.txtar", "../../testdata/programs/*.dmir")
	runtime := watchedRuntime(t, built(t, "elements.dmir", texts["elements"], arch))
	run := func(t *testing.T, p *artifact.Program) (string, error) {
		cmd := exec.Command(linked(t, p, runtime))
		cmd.Env = append(os.Environ(), "DMIR_THREADS=2", "ASAN_OPTIONS=detect_leaks=0")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := run(t, built(t, name+".dmir", text, arch)); err != nil || !strings.Contains(out, ": done, ") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	t.Run("a kernel that reads behind its input", func(t *testing.T) {
		p := built(t, "elements.dmir", texts["elements"], arch)
		p.Buffers[p.Inputs[0]].Shape = []int64{1}
		if out, err := run(t, p); err == nil || !strings.Contains(out, "heap-buffer-overflow") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// A program in C that links an object prints the numbers of a run.
func TestEmbedded(t *testing.T) {
	clang := needClang(t)
	text := programs(t, "../../testdata/programs/cnn_forward.dmir")["cnn_forward"]
	host, _ := native.Host()
	p := built(t, "cnn_forward.dmir", text, host)
	dir := t.TempDir()
	object, err := native.Object(t.Context(), p, host)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"step.o": object, "dmir.h": []byte(native.Header(p))} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	main, err := filepath.Abs("../../examples/embed/embed.c")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(clang.Path, "-Wall", "-Werror", "-I.", "-o", "main", main, "step.o", "-lm", "-lpthread")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := exec.Command(filepath.Join(dir, "main")).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, got = cut(got, "\n")
	if want := means(t, text); string(got) != want {
		t.Errorf("the C program prints\n%s\nand a run gives\n%s", got, want)
	}
}

func cut(b []byte, sep string) (before, after []byte) {
	x, y, _ := strings.Cut(string(b), sep)
	return []byte(x), []byte(y)
}

// means runs a program on the inputs of the example in C, and writes the means as it does.
func means(t *testing.T, text string) string {
	t.Helper()
	p := program.Load(source.New("f.dmir", text), program.Options{})
	m, fn, err := driver.Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*tensor.Tensor{}
	for _, v := range fn.Args {
		var shape []int
		for _, d := range v.Tensor().Shape {
			n, _ := d.Int()
			shape = append(shape, int(n))
		}
		x := tensor.New(v.Elem(), shape...)
		for k := range x.Len() {
			if v.Elem() == types.F32 {
				x.SetFloat(k, float64(k%7)/16)
			}
		}
		in[strings.TrimPrefix(v.Name, "%")] = x
	}
	res, err := driver.Run(t.Context(), driver.Job{Program: p, Module: m, Fn: fn, Inputs: in, Device: "cpu"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, o := range res.Outputs {
		if o.Tensor.Elem != types.F32 {
			continue
		}
		var sum float64
		for k := range o.Tensor.Len() {
			sum += o.Tensor.Float(k)
		}
		fmt.Fprintf(&b, "%s: mean %.4g\n", o.Name, sum/float64(o.Tensor.Len()))
	}
	return b.String()
}
