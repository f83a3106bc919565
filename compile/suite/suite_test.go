package suite

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
	"dmir/gpu/cuda"
	"dmir/gpu/device"
	"dmir/gpu/emulator"
	"dmir/testkit/need"
)

// scripted is a device whose programs end with given outcomes.
type scripted struct {
	device.Device
	run func(p *artifact.Program, inputs [][]byte) (*device.Result, error)
	n   int
}

func (d *scripted) Run(_ context.Context, p *artifact.Program, inputs [][]byte, _ device.Options) (*device.Result, error) {
	d.n++
	return d.run(p, inputs)
}

// valuesOf are the tests' program's arguments of a seed and its results.
func valuesOf(seed uint64) (args, want []*tensor.Tensor, err error) {
	x := tensor.Random(types.F32, []int{artifacttest.N}, seed, 0)
	out, sum := tensor.New(types.F32, artifacttest.N), tensor.New(types.F32, 1)
	total := 0.0
	for i := range x.Len() {
		total += 3 * x.Float(i)
	}
	for i := range x.Len() {
		out.SetFloat(i, 2*x.Float(i)+total)
	}
	sum.SetFloat(0, total)
	return []*tensor.Tensor{x}, []*tensor.Tensor{out, sum}, nil
}

// caseOf is the tests' program with what it should give for the inputs of a seed, and of another one if again is given.
func caseOf(t *testing.T, name, class string, again func(uint64) (args, want []*tensor.Tensor, err error)) (*Case, [][]byte) {
	t.Helper()
	p := artifacttest.Program()
	p.Name = name
	args, want, _ := valuesOf(7)
	c, err := Make(Source{
		Name: name, Class: class, Args: args, Want: want, Again: again,
		Build:  func(string) (*artifact.Program, error) { return p, nil },
		Within: func(int) Within { return Within{Most: 1e-4} },
	}, 7, "")
	if err != nil {
		t.Fatal(err)
	}
	if c.Sets[0].Inputs[0].Bytes != nil {
		t.Error("random numbers are kept although they can be made again")
	}
	var raw [][]byte
	for _, x := range want {
		raw = append(raw, tensor.Pack(x))
	}
	return c, raw
}

// A case that was written is what it was, and the emulator passes it.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	c, _ := caseOf(t, "kept", "row", valuesOf)
	if err := c.Write(dir); err != nil {
		t.Fatal(err)
	}
	files, err := Files(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	d, _, err := device.Find("emulator")
	need.OK(t, err)
	var got []Report
	if err := Run(t.Context(), d, files, Options{Limit: time.Minute}, func(r Report) { got = append(got, r) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Outcome != Failed || !strings.Contains(got[0].Why, emulator.ErrForeign.Error()) {
		t.Errorf("without trust: %+v", got)
	}
	got = nil
	if err := Run(t.Context(), d, files, Options{Limit: time.Minute, Trust: true}, func(r Report) { got = append(got, r) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Outcome != Passed || got[0].Case != "kept" || got[0].Repeated == nil || !*got[0].Repeated {
		t.Errorf("%+v", got)
	}
	// Of the second set of inputs only the cases run that have one.
	one, _ := caseOf(t, "one", "row", nil)
	if err := one.Write(dir); err != nil {
		t.Fatal(err)
	}
	files, _ = Files(dir)
	got = nil
	if err := Run(t.Context(), d, files, Options{Limit: time.Minute, Trust: true, Set: 1}, func(r Report) { got = append(got, r) }); err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 || len(got) != 1 || got[0].Case != "kept" || got[0].Outcome != Passed || c.Sets[1].Seed != 8 {
		t.Errorf("of the second set: %v, %+v", files, got)
	}
	if alone, err := Files(files[0]); err != nil || len(alone) != 1 {
		t.Errorf("of a file %v, %v", alone, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "broken.case"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	files, _ = Files(dir)
	if err := Run(t.Context(), d, files, Options{}, func(Report) {}); err == nil {
		t.Error("a damaged case was taken")
	}
}

// After two hangs or faults a class is left alone; the others go on, in turn.
func TestStrikes(t *testing.T) {
	dir := t.TempDir()
	var right [][]byte
	for _, name := range []string{"a1", "a2", "a3", "a4", "b1", "b2", "c1"} {
		c, raw := caseOf(t, name, name[:1], nil)
		right = raw
		if err := c.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := Files(dir)
	second := 0
	d := &scripted{run: func(p *artifact.Program, _ [][]byte) (*device.Result, error) {
		switch {
		case p.Name == "a1":
			return nil, &cuda.Fault{Step: "k", Err: errors.New("it fell")}
		case p.Name[0] == 'a':
			return nil, context.DeadlineExceeded
		case p.Name == "b1":
			return &device.Result{Outputs: [][]byte{right[0], make([]byte, 4)}}, nil
		case p.Name == "c1":
			if second++; second == 2 {
				other := append([]byte(nil), right[0]...)
				other[0] ^= 1
				return &device.Result{Outputs: [][]byte{other, right[1]}}, nil
			}
		}
		return &device.Result{Outputs: right}, nil
	}}
	var order []string
	got := map[string]Report{}
	if err := Run(t.Context(), d, files, Options{Limit: time.Minute}, func(r Report) { order, got[r.Case] = append(order, r.Case), r }); err != nil {
		t.Fatal(err)
	}
	if s := strings.Join(order, " "); s != "a1 b1 c1 a2 b2 a3 a4" {
		t.Errorf("the order is %s", s)
	}
	for name, want := range map[string][2]string{
		"a1": {Faulted, "the kernel k failed: it fell"}, "a2": {Hung, "it did not end within 1m0s"}, "a3": {Skipped, "2 of its class hung or faulted"}, "a4": {Skipped, "2 of its class"},
		"b1": {Wrong, "result 1: 1 of 1 elements differ"}, "b2": {Passed, ""}, "c1": {Wrong, "a second run gives other bytes"},
	} {
		if r := got[name]; r.Outcome != want[0] || !strings.Contains(r.Why, want[1]) {
			t.Errorf("%s: %+v, want %v", name, r, want)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	d.n = 0
	if err := Run(over, d, files, Options{}, func(r Report) {
		if r.Outcome != Skipped {
			t.Errorf("after the time %+v", r)
		}
	}); err != nil || d.n > 0 {
		t.Errorf("%v, %d runs after the time", err, d.n)
	}
}

// Of a large result a sample is kept; what is wrong elsewhere shows in the sums.
func TestSample(t *testing.T) {
	x := tensor.Random(types.F16, []int{300, 1000}, 3, 0)
	x.SetFloat(5, math.NaN())
	w, err := wantOf(x, nil, Within{Most: 1e-3}, sampled)
	if err != nil || w.Sample == 0 || len(w.Bytes) != 2*sampled {
		t.Fatalf("%d of %d bytes kept, %v", len(w.Bytes), 2*x.Len(), err)
	}
	raw := tensor.Pack(x)
	if err := w.check(raw); err != nil {
		t.Error(err)
	}
	kept := map[int]bool{}
	for _, i := range indices(w.Len, w.Sample) {
		kept[i] = true
	}
	spoil := func(value float64, want string, at ...int) {
		t.Helper()
		y := tensor.New(x.Elem, x.Shape...)
		for i := range x.Len() {
			y.SetFloat(i, x.Float(i))
		}
		for _, i := range at {
			y.SetFloat(i, value)
		}
		bad := tensor.Pack(y)
		if err := w.check(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	var others []int
	for i := range x.Len() {
		if !kept[i] {
			others = append(others, i)
		}
	}
	spoil(9, "1 of 8192 elements differ by more than 0.001: element 0 is 9", 0)
	spoil(1e4, "the sampled elements agree, others do not", others[7])
	spoil(math.Inf(1), "2 that are no numbers", others[7])
	spoil(0, "the sampled elements agree, others do not", others[:20000]...)
	if err := w.check(raw[2:]); err == nil {
		t.Error("too few bytes were taken")
	}
}

// The report of a probe for a wrong layout.
func TestLanded(t *testing.T) {
	p := Probe{Operand: "x", Rows: 16, Cols: 8, Result: Want{Elem: "f16", Len: 128}}
	pack := func(value func(i, j int) int) []byte {
		m := tensor.New(types.F16, 16, 8)
		for i := range 16 {
			for j := range 8 {
				m.SetFloat(i*8+j, float64(value(i, j)))
			}
		}
		return tensor.Pack(m)
	}
	for _, c := range []struct {
		name     string
		row, col func(i, j int) int
		want     string
	}{
		{"right", func(i, _ int) int { return i }, func(_, j int) int { return j }, ""},
		{"two rows change places", func(i, _ int) int { return i ^ 1 }, func(_, j int) int { return j }, "x: 128 of 128 elements landed elsewhere, 64 of them from -1 rows and +0 columns away: [0,0] holds x[1,0], [0,1] holds x[1,1]"},
		{"columns turn", func(i, _ int) int { return i }, func(_, j int) int { return (j + 1) % 8 }, "112 of them from +0 rows and +1 columns away: [0,0] holds x[0,1]"},
		{"rows are columns", func(_, j int) int { return j }, func(i, _ int) int { return i }, "[0,1] holds x[1,0]"},
	} {
		got, err := p.landed(pack(c.row), pack(c.col))
		if err != nil || !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}
