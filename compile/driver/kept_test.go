package driver

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/stages/stagestest"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/gpu/native"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// keptText adds an array in a file, and one in the text, to its argument.
const keptText = `func.func @f(%x: tensor<2x32xf32>) -> tensor<2x32xf32> {
  %w = dm.constant #dm.file<"w.npy"> : tensor<2x32xf32>
  %c = dm.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0, 29.0, 30.0, 31.0, 32.0], [32.0, 31.0, 30.0, 29.0, 28.0, 27.0, 26.0, 25.0, 24.0, 23.0, 22.0, 21.0, 20.0, 19.0, 18.0, 17.0, 16.0, 15.0, 14.0, 13.0, 12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]]> : tensor<2x32xf32>
  %y = dm.add %x, %w : tensor<2x32xf32>
  %z = dm.add %y, %c : tensor<2x32xf32>
  return %z : tensor<2x32xf32>
}
`

// keptRun is a program with its file, and the cache that it has.
type keptRun struct {
	t          *testing.T
	dir, cache string
}

func newKeptRun(t *testing.T) keptRun {
	_, err := native.Find(t.Context())
	need.OK(t, err)
	r := keptRun{t, t.TempDir(), t.TempDir()}
	t.Setenv("DMIR_CACHE", r.cache)
	r.weights(100)
	return r
}

// weights writes the file, all of whose elements are v but for the first.
func (r keptRun) weights(v float64) {
	w := make([]float64, 64)
	for i := range w {
		w[i] = v
	}
	w[0] = 0
	must(r.t, tensor.SaveNPY(filepath.Join(r.dir, "w.npy"), tensor.FromFloats(types.F32, []int{2, 32}, w)))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r keptRun) job(text string) (Job, device.Device) {
	p := program.Load(source.New(filepath.Join(r.dir, "f.dmir"), text), program.Options{Arrays: tensor.In(r.dir)})
	m, fn, err := Pick(p, "")
	must(r.t, err)
	d, _, err := Choose("cpu")
	must(r.t, err)
	return Job{Program: p, Module: m, Fn: fn, Device: "cpu"}, d
}

// found reports whether the program is in the cache.
func (r keptRun) found(text string) bool {
	j, d := r.job(text)
	j = j.targeted()
	p, _ := j.kept(r.t.Context(), d, j.keptPath(r.t.Context(), d))
	return p != nil
}

// last is the last element of the result, which the reference executor has too.
func (r keptRun) last(text string) float64 {
	r.t.Helper()
	j, _ := r.job(text)
	got, err := Run(r.t.Context(), j, nil)
	must(r.t, err)
	j.Device = "reference"
	want, err := Run(r.t.Context(), j, nil)
	must(r.t, err)
	for i := range want.Outputs[0].Tensor.Len() {
		if a, b := got.Outputs[0].Tensor.Float(i), want.Outputs[0].Tensor.Float(i); a != b {
			r.t.Fatalf("element %d is %v, the reference executor computes %v", i, a, b)
		}
	}
	return got.Outputs[0].Tensor.Float(63)
}

// A finished program is found by what it was made of; what its files hold is read in each run.
func TestKept(t *testing.T) {
	r := newKeptRun(t)
	if r.found(keptText) {
		t.Fatal("an empty cache has the program")
	}
	before := r.last(keptText)
	if !r.found(keptText) {
		t.Fatal("the program was not kept")
	}
	if again := r.last(keptText); again != before {
		t.Errorf("%v from the cache, %v before", again, before)
	}
	r.weights(200)
	if !r.found(keptText) {
		t.Error("the program is another with other weights")
	}
	if after := r.last(keptText); after != before+100 {
		t.Errorf("%v with other weights, want %v", after, before+100)
	}
	if r.found(strings.Replace(keptText, "1.0, 2.0", "2.0, 2.0", 1)) {
		t.Error("a program with another number is found")
	}
	j, d := r.job(keptText)
	j = j.targeted()
	path := j.keptPath(t.Context(), d)
	for name, other := range map[string]func(*Job){
		"a size":    func(j *Job) { j.Program.Bind = map[string]int64{"n": 3} },
		"a mesh":    func(j *Job) { j.On.Mesh = map[string]int64{"d": 2} },
		"devices":   func(j *Job) { j.On.Devices = 2 },
		"a machine": func(j *Job) { m := *j.Machine; m.Launch *= 2; m.Bandwidth++; j.Machine = &m },
	} {
		k, _ := r.job(keptText)
		k = k.targeted()
		if other(&k); k.keptPath(t.Context(), d) == path {
			t.Errorf("%s makes no other program", name)
		}
	}
}

// The stages of a pipeline are kept, and found, together.
func TestKeptStages(t *testing.T) {
	r := newKeptRun(t)
	j, d := r.job(stagestest.Step{Stages: 2, Micro: 2, Schedule: "1f1b", Mesh: "pipe = 2"}.Text())
	j.On.Devices = 2
	before, err := Run(t.Context(), j, nil)
	must(t, err)
	j = j.targeted()
	p, _ := j.kept(t.Context(), d, j.keptPath(t.Context(), d))
	if p == nil || len(p.Stages) != 2 || p.Stages[1].Program.Source != "" {
		t.Fatalf("not kept, or with its source: %+v", p)
	}
	again, err := Run(t.Context(), j, nil)
	must(t, err)
	for i, want := range before.Outputs {
		if x := again.Outputs[i].Tensor; tensor.MaxDiff(x, want.Tensor) != 0 {
			t.Errorf("%s from the cache is %s, before %s", want.Name, x, want.Tensor)
		}
	}
}

// What of the cache is damaged, missing, or cannot be written is passed by.
func TestKeptDamaged(t *testing.T) {
	r := newKeptRun(t)
	before := r.last(keptText)
	j, d := r.job(keptText)
	path := j.targeted().keptPath(t.Context(), d)
	text, err := os.ReadFile(path)
	must(t, err)
	for name, damage := range map[string]func(){
		"an entry":   func() { must(t, os.WriteFile(path, append([]byte("9"), text...), 0o644)) },
		"a sum":      func() { must(t, os.WriteFile(path+".sum", nil, 0o644)) },
		"no entries": func() { must(t, os.RemoveAll(filepath.Dir(path))) },
		"no objects": func() { must(t, os.RemoveAll(filepath.Join(r.cache, "native"))) },
	} {
		damage()
		if after := r.last(keptText); after != before {
			t.Errorf("%s: %v, want %v", name, after, before)
		}
		if !r.found(keptText) {
			t.Errorf("%s: the program is not kept again", name)
		}
	}
	t.Setenv("DMIR_CACHE", filepath.Join(r.dir, "f.dmir", "none")) // no folder can be there
	must(t, os.WriteFile(filepath.Join(r.dir, "f.dmir"), nil, 0o644))
	if after := r.last(keptText); after != before {
		t.Errorf("without a cache: %v, want %v", after, before)
	}
}

// A kept program has the bytes of constants of its text, and reads the others.
func TestKeptCodec(t *testing.T) {
	r := newKeptRun(t)
	j, d := r.job(keptText)
	p, _, err := j.build(t.Context(), d)
	must(t, err)
	var b bytes.Buffer
	must(t, p.Keep(&b, nil))
	var notes any
	got, err := artifact.ReadKept(bytes.NewReader(b.Bytes()), &notes, j.array)
	must(t, err)
	for i := range p.Buffers {
		if !bytes.Equal(p.Buffers[i].Data, got.Buffers[i].Data) {
			t.Errorf("%s has other data", p.Buffers[i].Name)
		}
	}
	if got.Source != "" || got.Object == "" {
		t.Errorf("%d bytes of source, object %q", len(got.Source), got.Object)
	}
	missing := errors.New("missing")
	if _, err := artifact.ReadKept(bytes.NewReader(b.Bytes()), &notes, func(*artifact.Buffer) ([]byte, error) { return nil, missing }); !errors.Is(err, missing) {
		t.Errorf("a file that is missing: %v", err)
	}
	for n := range b.Len() {
		if _, err := artifact.ReadKept(bytes.NewReader(b.Bytes()[:n]), &notes, j.array); err == nil {
			t.Fatalf("%d of %d bytes are a program", n, b.Len())
		}
	}
}

// What answers first depends on how often the program runs, on the size of its work, and on whether it
// was compiled before.
func TestForecast(t *testing.T) {
	r := newKeptRun(t)
	if device.Default() != nil {
		need.OK(t, errors.New("auto takes the GPU of this machine"))
	}
	run := func(steps int) *Result {
		j, _ := r.job(keptText)
		j.Device, j.Steps = "auto", steps
		res, err := Run(t.Context(), j, nil)
		must(t, err)
		if !strings.Contains(res.Why, "predicted to answer first") {
			t.Errorf("%s for %q", res.Device, res.Why)
		}
		return res
	}
	if res := run(1); res.Device != "reference" {
		t.Errorf("a small program runs on %s (%s)", res.Device, res.Why)
	}
	if res := run(1 << 20); res.Device != "cpu" || !strings.Contains(res.Why, "to compile") {
		t.Errorf("many steps run on %s (%s)", res.Device, res.Why)
	}
	if res := run(1 << 20); res.Device != "cpu" || !strings.Contains(res.Why, "compiled before") {
		t.Errorf("many steps run on %s (%s) again", res.Device, res.Why)
	}
	j, d := r.job(keptText)
	f, ok := j.forecast(t.Context(), d)
	j.Steps = 10
	ten, _ := j.forecast(t.Context(), d)
	if !ok || ten.reference != 10*f.reference || ten.run != 10*f.run || ten.compile != f.compile {
		t.Errorf("%+v for ten steps, %+v for one", ten, f)
	}
}
