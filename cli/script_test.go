package cli_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"dmir/base/local"
	"dmir/cli"
	"dmir/gpu/cuda"
	"dmir/gpu/emulator"
	"dmir/gpu/native"
	"dmir/gpu/nvrtc"
	"dmir/testkit/onnxmodel"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"dmir": func() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs testdata/script/*.txtar, each a story at the command line.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup:         tools,
		Condition:     condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "refuses": refuses, "bytes": writeBytes, "npy": writeNPY, "ramp": writeRamp, "ints": writeInts, "only": only, "head": head, "onnx": writeONNX,
		},
	})
}

// tools sets the environment of a script: the CUDA compiler and the disassembler of
// this machine, since HOME is different, and a cache with a separate key, in which
// compiled programs are those of all tests. Programs run on the reference executor unasked,
// unless the script unsets DMIR_CLANG.
func tools(env *testscript.Env) error {
	env.Setenv("DMIR_CLANG", filepath.Join(env.WorkDir, "no-clang"))
	if c, err := nvrtc.Find(); err == nil {
		env.Setenv("DMIR_NVRTC", c.Path)
	}
	if path, err := nvrtc.Disassembler(); err == nil {
		env.Setenv("PATH", filepath.Dir(path)+string(os.PathListSeparator)+env.Getenv("PATH"))
	}
	cache := filepath.Join(env.WorkDir, ".cache")
	env.Setenv("DMIR_CACHE", cache)
	return fillCache(cache)
}

// ownCache sets a new cache that has a separate key, but in which compiled programs are those of all tests.
func ownCache(t *testing.T) {
	t.Helper()
	cache := filepath.Join(t.TempDir(), "cache")
	if err := fillCache(cache); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DMIR_CACHE", cache)
}

// fillCache makes a cache, of links to parts of the one that is set.
func fillCache(cache string) error {
	if err := os.Mkdir(cache, 0o700); err != nil || runtime.GOOS == "windows" { // which allows links to administrators only
		return err
	}
	for _, name := range []string{"emulator", "nvrtc", "figures"} {
		shared, err := local.CacheDir(name)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(shared, 0o755); err != nil {
			return err
		}
		if err := os.Symlink(shared, filepath.Join(cache, name)); err != nil {
			return err
		}
	}
	return nil
}

// condition evaluates [nvrtc], [nvdisasm], [emulator] and [gpu]: whether they are
// available. With CI=true all but the last must be.
func condition(name string) (bool, error) {
	var err error
	switch name {
	case "nvrtc":
		_, err = nvrtc.Find()
	case "nvdisasm":
		_, err = nvrtc.Disassembler()
	case "emulator":
		err = emulator.Check()
	case "clang":
		_, err = native.Find(context.Background())
	case "gpu":
		gpus, err := cuda.Devices()
		return err == nil && len(gpus) > 0, nil
	default:
		return false, errors.New("unknown condition " + name)
	}
	if err != nil && os.Getenv("CI") == "true" {
		return false, err
	}
	return err == nil, nil
}

// exits STATUS COMMAND ARGS... runs the command and requires its exit status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var e *exec.ExitError
	if errors.As(err, &e) {
		got = e.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
	for _, out := range []string{ts.ReadFile("stdout"), ts.ReadFile("stderr")} {
		if strings.Contains(out, "goroutine ") || strings.Contains(out, "panic:") {
			ts.Fatalf("it panicked")
		}
	}
}

// refuses TEXT COMMAND ARGS... requires exit status 2, nothing on stdout and
// one diagnostic on stderr, with the text in it.
func refuses(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: refuses TEXT COMMAND ARGS...")
	}
	exits(ts, false, append([]string{"2"}, args[1:]...))
	stderr := ts.ReadFile("stderr")
	if n := strings.Count(stderr, "error"); n != 1 || !strings.Contains(stderr, args[0]) || ts.ReadFile("stdout") != "" {
		ts.Fatalf("want one error with %q in it and nothing else", args[0])
	}
}

// bytes FILE COUNT TEXT makes a file of COUNT bytes by repeating TEXT, in
// which \n and \0 are escapes; beyond the first thousands it is a hole of zeros.
func writeBytes(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	text := []byte(strings.NewReplacer(`\n`, "\n", `\0`, "\x00").Replace(args[2]))
	written := min(n, 4096)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bytes.Repeat(text, written/len(text)+1)[:written], 0o644))
	ts.Check(os.Truncate(ts.MkAbs(args[0]), int64(n)))
}

// npy FILE DTYPE SHAPE COUNT makes an array of COUNT zero elements, its header
// written as NumPy does.
func writeNPY(ts *testscript.TestScript, neg bool, args []string) {
	size, err := strconv.Atoi(args[1][2:])
	ts.Check(err)
	count, err := strconv.Atoi(args[3])
	ts.Check(err)
	npyFile(ts, args[0], args[1], args[2], make([]byte, size*count))
}

// ramp FILE SHAPE COUNT writes the numbers 0, 0.1, 0.2 … as float32.
func writeRamp(ts *testscript.TestScript, neg bool, args []string) {
	count, err := strconv.Atoi(args[2])
	ts.Check(err)
	var data []byte
	for i := range count {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i)/10))
	}
	npyFile(ts, args[0], "<f4", args[1], data)
}

// ints FILE NUMBERS... writes numbers as int64.
func writeInts(ts *testscript.TestScript, neg bool, args []string) {
	var data []byte
	for _, text := range args[1:] {
		n, err := strconv.ParseInt(text, 10, 64)
		ts.Check(err)
		data = binary.LittleEndian.AppendUint64(data, uint64(n))
	}
	npyFile(ts, args[0], "<i8", fmt.Sprintf("(%d,)", len(args)-1), data)
}

func npyFile(ts *testscript.TestScript, name, descr, shape string, data []byte) {
	header := "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }"
	for (len(header)+11)%64 != 0 {
		header += " "
	}
	header += "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	ts.Check(os.WriteFile(ts.MkAbs(name), append(append(out, header...), data...), 0o644))
}

// only DIR NAMES... requires that DIR holds exactly the files named, and no
// temporary files.
func only(ts *testscript.TestScript, neg bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	if err != nil && len(args) > 1 {
		ts.Fatalf("%v", err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	if strings.Join(have, " ") != strings.Join(args[1:], " ") {
		ts.Fatalf("%s holds %v, want %v", args[0], have, args[1:])
	}
}

// head FROM TO copies the first half of a file.
func head(ts *testscript.TestScript, neg bool, args []string) {
	whole, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), whole[:len(whole)/2], 0o644))
}

// writeONNX writes a model with a size N: onnx FILE, or as the case of a suite whose
// expected output is right, or wrong: onnx right DIR, onnx wrong DIR. onnx large FILE has
// weights that are many, onnx layer FILE a layer to train.
func writeONNX(ts *testscript.TestScript, neg bool, args []string) {
	m := onnxmodel.Model(13, onnxmodel.Graph(
		[]onnxmodel.Message{onnxmodel.Value("x", onnxmodel.F32, "N", 2)}, []onnxmodel.Message{onnxmodel.Value("y", onnxmodel.F32, "N", 2)},
		[]onnxmodel.Message{onnxmodel.Floats("w", []int{2, 2}, 1, 2, 3, 4)},
		onnxmodel.Node("MatMul", []string{"x", "w"}, []string{"h"}), onnxmodel.Node("Relu", []string{"h"}, []string{"y"}),
	))
	if args[0] == "large" {
		m = onnxmodel.Model(13, onnxmodel.Graph(
			[]onnxmodel.Message{onnxmodel.Value("x", onnxmodel.F32, 1, 2)}, []onnxmodel.Message{onnxmodel.Value("y", onnxmodel.F32, 1, 9)},
			[]onnxmodel.Message{onnxmodel.Floats("fc/w", []int{2, 9}, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)},
			onnxmodel.Node("MatMul", []string{"x", "fc/w"}, []string{"y"}),
		))
		args = args[1:]
	}
	if args[0] == "layer" {
		m = onnxmodel.Model(20, onnxmodel.Graph(
			[]onnxmodel.Message{onnxmodel.Value("x", onnxmodel.F32, 2, 3)}, []onnxmodel.Message{onnxmodel.Value("y", onnxmodel.F32, 2, 2)},
			[]onnxmodel.Message{onnxmodel.Floats("0.weight", []int{3, 2}, 1, 2, 3, 4, 5, 6), onnxmodel.Floats("0.bias", []int{2}, 0, 0)},
			onnxmodel.Node("MatMul", []string{"x", "0.weight"}, []string{"h"}), onnxmodel.Node("Add", []string{"h", "0.bias"}, []string{"y"}),
		))
		args = args[1:]
	}
	if len(args) == 1 {
		ts.Check(os.WriteFile(ts.MkAbs(args[0]), m, 0o644))
		return
	}
	want := map[string]float32{"right": 4, "wrong": 5}[args[0]]
	dir := ts.MkAbs(args[1])
	set := filepath.Join(dir, "test_data_set_0")
	ts.Check(os.MkdirAll(set, 0o755))
	ts.Check(os.WriteFile(filepath.Join(dir, "model.onnx"), m, 0o644))
	ts.Check(os.WriteFile(filepath.Join(set, "input_0.pb"), onnxmodel.Floats("x", []int{1, 2}, 1, 1), 0o644))
	ts.Check(os.WriteFile(filepath.Join(set, "output_0.pb"), onnxmodel.Floats("y", []int{1, 2}, want, 6), 0o644))
}
