// Command sparse compares products with sparse matrices that dmir runs on the processor with SciPy
// and with PyTorch's sparse CSR: the same matrices, the same number of threads, in one run.
//
//	go run ./bench/sparse [-threads 1,2] [-size 65536] [-run REGEXP] [-python FILE] [-json FILE] [-md FILE]
//
// Results are compared before a row is timed; where dmir calibrate has measured the processor, the times that it predicts for all threads stand beside
// those measured. Then the contestants take turns, and the best median of each counts, since
// others use the machine too. SciPy has one thread. Interrupted, it writes the rows that it has measured.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/bench/peer"
	"dmir/bench/record"
	"dmir/compile/driver"
	"dmir/compile/interp"
	_ "dmir/compile/target/all"
	"dmir/compile/tensor"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/syntax/source"
)

// python is a peer's process.
type python struct {
	*peer.Process
	name  string
	About string `json:"about"`
	Error string `json:"error"`
}

func start(file, here, name string) (*python, error) {
	cmd := exec.Command(file, filepath.Join(here, "peers.py"), name)
	cmd.Stderr = os.Stderr
	// Memory that a peer frees stays in its process, so that it pays for new pages as rarely as dmir.
	cmd.Env = append(os.Environ(), "MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=1000000000000", "MALLOC_TOP_PAD_=268435456", "PYTHONDONTWRITEBYTECODE=1")
	p := &python{name: name}
	var err error
	if p.Process, err = peer.Start(cmd, p, fmt.Errorf("%s ended", name)); err == nil && p.Error != "" {
		err = errors.New(p.Error)
	}
	return p, err
}

func (p *python) ask(q any) (time.Duration, error) {
	var a struct {
		Seconds float64 `json:"seconds"`
		Error   string  `json:"error"`
	}
	if err := p.Ask(q, &a); err != nil {
		return 0, err
	}
	if a.Error != "" {
		return 0, errors.New(a.Error)
	}
	return time.Duration(a.Seconds * 1e9), nil
}

// figures are the times of a row.
type figures struct {
	Matrix  string             `json:"matrix"`
	Row     string             `json:"name"`
	Stored  int                `json:"stored"`
	Threads int                `json:"threads"`
	Ms      float64            `json:"ms"`
	Predict float64            `json:"predicted_ms,omitempty"`
	Ratio   map[string]float64 `json:"ratio"` // of a peer's time
	Without map[string]string  `json:"without,omitempty"`
}

// report is what is written.
type report struct {
	Date  string            `json:"date"`
	CPU   string            `json:"cpu"`
	Peers map[string]string `json:"peers"`
	Load  [2]string         `json:"load"` // of the machine, at the begin and the end
	Rows  []figures         `json:"rows"`
}

func main() {
	log.SetFlags(0)
	threads := flag.String("threads", "1,2", "numbers of threads, separated by commas")
	size := flag.Int("size", 1<<16, "rows of the matrices")
	only := flag.String("run", "", "the rows whose names match, as MATRIX ROW")
	file := flag.String("python", "build/bench-sparse/bin/python", "Python with the packages of requirements.txt")
	here := flag.String("here", "bench/sparse", "this command's folder")
	rounds := flag.Int("rounds", 7, "samples of a row")
	asJSON := flag.String("json", "", "write the results to this file; DATE and MODEL in its name are replaced")
	asText := flag.String("md", "", "write the table to this file, likewise")
	flag.Parse()
	d, _, err := device.Find("cpu")
	if err != nil {
		log.Fatal(err)
	}
	cpu, _, _ := strings.Cut(d.Title(), " (")
	r := &report{Date: time.Now().UTC().Format(time.DateOnly), CPU: cpu, Peers: map[string]string{}, Load: [2]string{record.Load()}}
	var peers []*python
	for _, name := range []string{"scipy", "torch"} {
		p, err := start(*file, *here, name)
		if err != nil {
			r.Peers[name] = "missing: " + err.Error()
			continue
		}
		r.Peers[name] = p.About
		defer p.Close()
		peers = append(peers, p)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	match := regexp.MustCompile(*only)
	for _, m := range matrices(*size) {
		for _, w := range rows(&m) {
			if ctx.Err() != nil || !match.MatchString(m.name+" "+w.name) {
				continue
			}
			for _, s := range strings.Split(*threads, ",") {
				n, err := strconv.Atoi(s)
				if err != nil {
					log.Fatal(err)
				}
				f, err := measure(d, &m, &w, peers, n, *rounds)
				if ctx.Err() != nil { // the peers are interrupted as well
					continue
				}
				if err != nil {
					log.Fatalf("%s %s: %v", m.name, w.name, err)
				}
				log.Printf("%-10s %-9s %d threads %9.3f ms %v", f.Matrix, f.Row, f.Threads, f.Ms, f.Ratio)
				r.Rows = append(r.Rows, *f)
			}
		}
	}
	r.Load[1] = record.Load()
	dated := func(path string) string { return record.Named(path, cpu, r.Date) }
	text := r.table()
	fmt.Print(text)
	if err := errors.Join(record.JSON(dated(*asJSON), r), record.Table(dated(*asText), text)); err != nil {
		log.Fatal(err)
	}
}

// measure measures a row with a number of threads.
func measure(d device.Device, m *matrix, w *row, peers []*python, threads, rounds int) (*figures, error) {
	ctx := context.Background()
	runtime.GOMAXPROCS(threads)
	if err := os.Setenv("DMIR_THREADS", strconv.Itoa(threads)); err != nil {
		return nil, err
	}
	local := machine.Host()
	p := program.Load(source.New("row.dmir", w.text), program.Options{Target: local})
	if p.HasErrors() {
		return nil, errors.New(p.Diags[0].Message)
	}
	module, fn, err := driver.Pick(p, "")
	if err != nil {
		return nil, err
	}
	given, err := m.given(w, p)
	if err != nil {
		return nil, err
	}
	args, err := interp.Inputs(ctx, fn, p.Bind, 7, given)
	if err != nil {
		return nil, err
	}
	out, err := driver.Build(ctx, module, fn, driver.BuildOptions{Machine: p.Target, Arch: d.Arch(), Bind: p.Bind})
	if err != nil {
		return nil, err
	}
	in, err := driver.Pack(out, args)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "bench-sparse-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	flat, _ := flatten.Func(fn)
	files := m.files()
	for i, a := range flat.Args {
		files[a.Name[1:]] = args[i]
	}
	for name, x := range files {
		if err := tensor.SaveNPY(filepath.Join(folder, name+".npy"), x); err != nil {
			return nil, err
		}
	}
	f := &figures{Matrix: m.name, Row: w.name, Stored: m.stored(), Threads: threads, Ratio: map[string]float64{}, Without: map[string]string{}}
	for _, s := range out.Steps {
		if local.Grain > 0 && threads == local.SMs {
			f.Predict += s.TimeNs / 1e6
		}
	}
	want, err := results(ctx, d, out, in)
	if err != nil {
		return nil, err
	}
	var able []*python
	for _, q := range peers {
		if _, err := q.ask(map[string]any{"do": "prepare", "kind": w.name, "folder": folder, "threads": threads}); err != nil {
			f.Without[q.name] = err.Error()
			continue
		}
		got, err := tensor.LoadNPY(filepath.Join(folder, q.name+".npy"), types.F32, want.Shape)
		if err != nil {
			return nil, err
		}
		if err := agree(got, want); err != nil {
			return nil, fmt.Errorf("%s: %w", q.name, err)
		}
		able = append(able, q)
	}
	runs, ours, times := 1, []time.Duration{}, map[string][]time.Duration{}
	for round := range rounds + 1 {
		r, err := d.Run(ctx, out, in, device.Options{Runs: runs})
		if err != nil {
			return nil, err
		}
		if round == 0 { // which also says how many runs a sample takes
			runs = int(min(max(20*time.Millisecond/max(r.Elapsed, 1), 1), 99)) | 1
			continue
		}
		ours = append(ours, r.Elapsed)
		for _, q := range able {
			time.Sleep(30 * time.Millisecond) // for the threads of the one before
			t, err := q.ask(map[string]any{"do": "sample", "runs": runs})
			if err != nil {
				return nil, err
			}
			times[q.name] = append(times[q.name], t)
		}
	}
	own := slices.Min(ours)
	f.Ms = own.Seconds() * 1e3
	for name, ts := range times {
		f.Ratio[name] = math.Round(100*slices.Min(ts).Seconds()/own.Seconds()) / 100
	}
	return f, nil
}

// given are the components of m by the names of w's arguments; where these are a sparse tensor, what was counted of it is stated in p.
func (m *matrix) given(w *row, p *program.Program) (map[string]*tensor.Tensor, error) {
	if w.format == "" {
		all := m.files()
		return map[string]*tensor.Tensor{"p": all["p"], "c": all["c"]}, nil
	}
	x, err := m.packed(w.format)
	if err != nil {
		return nil, err
	}
	given := map[string]*tensor.Tensor{}
	for k, c := range x.Type.Components() {
		given["a."+c.Name] = x.Parts[k]
	}
	counted := x.Count(m.name)
	m.elements(w.format == "csf").CountRows(counted)
	return given, p.Change(func(module *ir.Module) error {
		op.SetArgAttr(module.Funcs[0], 0, op.CountedAttr, counted.Attr())
		return nil
	})
}

// files are m's rows, columns and values for peers.
func (m *matrix) files() map[string]*tensor.Tensor {
	return map[string]*tensor.Tensor{
		"p": tensor.FromInts(types.I32, []int{m.n + 1}, m.positions),
		"c": tensor.FromInts(types.I32, []int{m.stored()}, m.columns),
		"a": m.values(),
	}
}

// results are the dense tensor of the first run, or the values of the sparse one.
func results(ctx context.Context, d device.Device, out *artifact.Program, in [][]byte) (*tensor.Tensor, error) {
	r, err := d.Run(ctx, out, in, device.Options{})
	if err != nil {
		return nil, err
	}
	all, err := driver.Unpack(out, r.Outputs)
	if err != nil {
		return nil, err
	}
	for i := len(all) - 1; i > 0; i-- {
		if x := all[i].Tensor; x.Elem == types.F32 && len(x.Shape) > 0 { // behind it are what checks compare
			return x, nil
		}
	}
	return all[0].Tensor, nil
}

// agree compares results that were summed in another order.
func agree(got, want *tensor.Tensor) error {
	var sum, off float64
	for i, v := range want.F32 {
		sum += float64(v) * float64(v)
		off = max(off, math.Abs(float64(v-got.F32[i])))
	}
	if scale := math.Sqrt(sum / float64(max(len(want.F32), 1))); off > 1e-3*scale {
		return fmt.Errorf("an element differs by %g, and the root mean square is %g", off, scale)
	}
	return nil
}

// table is the report for people.
func (r *report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s.", r.CPU, r.Date)
	for _, name := range []string{"scipy", "torch"} {
		fmt.Fprintf(&b, " %s: %s.", name, r.Peers[name])
	}
	fmt.Fprintf(&b, " %s to %s processes ran on %d cores, those of the benchmark included.", cmp.Or(r.Load[0], "?"), cmp.Or(r.Load[1], "?"), runtime.NumCPU())
	b.WriteString(" A ratio is the peer's time by dmir's.\n\n| matrix | stored | row | threads | dmir, ms | predicted, ms | SciPy | PyTorch |\n|---|---:|---|---:|---:|---:|---:|---:|\n")
	cell := func(f *figures, name string) string {
		if v, ok := f.Ratio[name]; ok {
			return fmt.Sprintf("%.2f", v)
		}
		return "—"
	}
	for _, f := range r.Rows {
		predicted := "—"
		if f.Predict > 0 {
			predicted = fmt.Sprintf("%.3f", f.Predict)
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %d | %.3f | %s | %s | %s |\n", f.Matrix, f.Stored, f.Row, f.Threads, f.Ms, predicted, cell(&f, "scipy"), cell(&f, "torch"))
	}
	return b.String()
}
