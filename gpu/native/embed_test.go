package native

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/testkit/need"
)

const examples = "../../examples/embed"

// object writes a program's object and header to a folder.
func object(t *testing.T, p *artifact.Program) (dir string) {
	t.Helper()
	dir = t.TempDir()
	arch, _ := Host()
	code, err := Object(t.Context(), p, arch)
	if err != nil {
		t.Fatal(err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "program.o"), code, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "dmir.h"), []byte(Header(p)), 0o600))
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// linked is a C program with the object of p.
func linked(t *testing.T, source string, p *artifact.Program) (path string) {
	t.Helper()
	clang, err := Find(t.Context())
	must(t, err)
	dir := object(t, p)
	path = filepath.Join(dir, "main")
	cmd := exec.Command(clang.Path, "-Wall", "-Wextra", "-Werror", "-I", dir, "-o", path, source, filepath.Join(dir, "program.o"), "-lm", "-lpthread")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// Every function of the C interface.
func TestInterface(t *testing.T) {
	needClang(t)
	out, err := exec.Command(linked(t, "testdata/state.c", step(3))).CombinedOutput()
	if err != nil || string(out) != "ok\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

// The examples for C and Python.
func TestExamples(t *testing.T) {
	needClang(t)
	cached(t)
	p := step(3)
	out, err := exec.Command(linked(t, filepath.Join(examples, "embed.c"), p)).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "@step with ") || !strings.Contains(string(out), ": done, ") {
		t.Errorf("%v\n%s", err, out)
	}
	python := need.Tool(t, "python3", "apt-get install python3")
	if exec.Command(python, "-c", "import numpy").Run() != nil {
		need.OK(t, errors.New("NumPy is not installed (pip install numpy), which the example for Python needs"))
	}
	arch, _ := Host()
	r, err := Compile(t.Context(), p, arch)
	must(t, err)
	path := filepath.Join(t.TempDir(), "step.so")
	must(t, os.WriteFile(path, r.Code, 0o600))
	out, err = exec.Command(python, filepath.Join(examples, "train.py"), path, "3").CombinedOutput()
	if err != nil || strings.Count(string(out), "\n") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
}

// Nothing but the interface is visible in a shared object, and kernels may be called like
// functions of the C library.
func TestSymbols(t *testing.T) {
	needClang(t)
	cached(t)
	b := program("names")
	x, y := b.buffer("x", "f32", artifact.Input, 3), b.buffer("y", "f32", artifact.Output, 3)
	for _, name := range []string{"free", "memcpy", "dmir_run", "main", "int", "run_steps"} {
		b.launch(name, "%r = fadd float %v0, %v0 ; @free \"@free\"", x, y)
	}
	p := b.done()
	arch, _ := Host()
	r, err := Compile(t.Context(), p, arch)
	must(t, err)
	path := filepath.Join(t.TempDir(), "names.so")
	must(t, os.WriteFile(path, r.Code, 0o600))
	out, err := exec.Command(need.Tool(t, "nm", "apt-get install binutils"), "-D", "--defined-only", path).Output()
	must(t, err)
	header, err := runtimeFiles.ReadFile("runtime/dmir.h")
	must(t, err)
	for line := range strings.Lines(string(out)) {
		name := strings.Fields(line)[2]
		if !strings.Contains(string(header), " "+name+"(") && !strings.Contains(string(header), "*"+name+"(") {
			t.Errorf("%s is visible", name)
		}
	}
	if len(r.Usage) != 6 || r.Usage[0].Name != "free" {
		t.Errorf("usage %v", r.Usage)
	}
	out, err = exec.Command(linked(t, filepath.Join(examples, "embed.c"), p)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), ": done, ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Texts of kernels have the program's names, for any architecture.
func TestTexts(t *testing.T) {
	needClang(t)
	for arch, want := range map[string]string{"x86-64-v2": "addps", "x86-64-v3": "ymm", "armv8-a": "fadd\tv"} {
		text, err := Assembly(t.Context(), doubled(100), arch)
		if err != nil || !strings.Contains(text, "\ntwice:") || !strings.Contains(text, want) {
			t.Errorf("%s: %v\n%s", arch, err, text)
		}
	}
	text, err := OptimisedIR(t.Context(), doubled(100), "x86-64-v3")
	if err != nil || !strings.Contains(text, "define void @twice(") || !strings.Contains(text, "<8 x float>") {
		t.Errorf("%v\n%s", err, text)
	}
}

// A header describes what names and shapes there are, whatever their characters.
func TestHeader(t *testing.T) {
	p := step(3)
	p.Name, p.File = "a*/b\n#error", "dir/x\n.dmir"
	p.Buffers[0].Name, p.Buffers[1].Name = "weight 1", "weight_1"
	text := Header(p)
	for _, want := range []string{"// a* /b·#error, compiled by dmir from x·.dmir.\n", "input weight 1: f32[3]\n", "the next value of weight_1\n", "#define A_B_ERROR_IN_WEIGHT_1 0\n", "#define A_B_ERROR_IN_WEIGHT_1_1 1\n", "#define A_B_ERROR_OUT_LOSS 2\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text[:600])
		}
	}
	needClang(t)
	dir := object(t, p) // the names are text in the object too
	clang, err := Find(t.Context())
	must(t, err)
	main := filepath.Join(dir, "main.c")
	must(t, os.WriteFile(main, []byte("#include \"dmir.h\"\nint x = A_B_ERROR_IN_WEIGHT_1_1;\n"), 0o600))
	if out, err := exec.Command(clang.Path, "-Wall", "-Werror", "-fsyntax-only", main).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
