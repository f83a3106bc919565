// Command sparse compares products with sparse matrices that dmir runs on the processor with SciPy, with PyTorch's sparse CSR and with
// MLIR's sparsifier: the same matrices, the same number of threads, in one run.
//
//	go run ./bench/sparse [-threads 1,2] [-size 65536] [-run REGEXP] [-steps] [-python FILE] [-json FILE] [-md FILE]
//	go run ./bench/sparse -against FILE.json [-run REGEXP]
//
// Results are compared before a row is timed; where dmir calibrate has measured the processor, the times that it predicts for all threads stand beside
// those measured. Then the contestants take turns, and the best median of each counts, since
// others use the machine too. SciPy and MLIR's sparsifier have one thread. Interrupted, it writes the rows that it has measured.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"dmir/bench/peer"
	"dmir/bench/record"
	_ "dmir/compile/target/all"
	"dmir/gpu/device"
)

// contestants are the peers.
var contestants = []string{"scipy", "torch", "mlir"}

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
	budget := flag.Duration("budget", 1200*time.Millisecond, "time after which a row has no more samples than three")
	asJSON := flag.String("json", "", "write the results to this file; DATE and MODEL in its name are replaced")
	asText := flag.String("md", "", "write the table to this file, likewise")
	from := flag.String("against", "", "measure nothing: compare what is predicted now with this file of results")
	steps := flag.Bool("steps", false, "log the time of each kernel beside that predicted")
	flag.Parse()
	d, _, err := device.Find("cpu")
	if err != nil {
		log.Fatal(err)
	}
	cpu, _, _ := strings.Cut(d.Title(), " (")
	match := regexp.MustCompile(*only)
	wanted := func(m *matrix, w *row) bool { return match.MatchString(m.name + " " + w.name) }
	if *from != "" {
		if err := against(context.Background(), os.Stdout, d, *from, *size, wanted); err != nil {
			log.Fatal(err)
		}
		return
	}
	r := &report{Date: time.Now().UTC().Format(time.DateOnly), CPU: cpu, Peers: map[string]string{}, Load: [2]string{record.Load()}}
	var peers []*python
	for _, name := range contestants {
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
	var numbers []int
	for _, s := range strings.Split(*threads, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			log.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	for _, m := range matrices(*size) {
		for _, w := range rows(&m) {
			if ctx.Err() != nil || !wanted(&m, &w) {
				continue
			}
			err := contestOf(ctx, d, &m, &w, peers, numbers, limits{*rounds, *budget, *steps}, r)
			if err != nil && ctx.Err() == nil { // the peers are interrupted as well
				log.Fatalf("%s %s: %v", m.name, w.name, err)
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

// contestOf measures a row with each number of threads, and adds it to r.
func contestOf(ctx context.Context, d device.Device, m *matrix, w *row, peers []*python, threads []int, l limits, r *report) error {
	c, err := prepare(ctx, d, m, w)
	if err != nil {
		return err
	}
	defer c.close()
	for _, n := range threads {
		f, err := c.measure(ctx, d, peers, n, l)
		if err != nil {
			return err
		}
		log.Printf("%-10s %-9s %d threads %9.3f ms, predicted %9.3f %v", f.Matrix, f.Row, f.Threads, f.Ms, f.Predict, f.Ratio)
		r.Rows = append(r.Rows, *f)
	}
	return nil
}

// table is the report for people.
func (r *report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s.", r.CPU, r.Date)
	for _, name := range contestants {
		fmt.Fprintf(&b, " %s: %s.", name, r.Peers[name])
	}
	fmt.Fprintf(&b, " %s to %s processes ran on %d cores, those of the benchmark included.", cmp.Or(r.Load[0], "?"), cmp.Or(r.Load[1], "?"), runtime.NumCPU())
	b.WriteString(" A ratio is the peer's time by dmir's.\n\n| matrix | stored | row | threads | dmir, ms | predicted, ms | SciPy | PyTorch | MLIR |\n|---|---:|---|---:|---:|---:|---:|---:|---:|\n")
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
		fmt.Fprintf(&b, "| %s | %d | %s | %d | %.3f | %s | %s | %s | %s |\n", f.Matrix, f.Stored, f.Row, f.Threads, f.Ms, predicted, cell(&f, "scipy"), cell(&f, "torch"), cell(&f, "mlir"))
	}
	return b.String()
}
