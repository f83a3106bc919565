// Command cpu compares the time of programs that dmir runs on the processor with
// OpenBLAS, PyTorch, ONNX Runtime, a copy of as many bytes, and the reference
// executor: the same inputs, the same number of threads, in one run.
//
//	go run ./bench/cpu [-threads 1,2] [-run REGEXP] [-json bench/results/cpu-MODEL-DATE.json] [-md FILE]
//
// Before a row is timed, the results of all contestants are compared. Then they take
// turns, so that drift of the machine's speed hits all of them. It exits with status 1 if
// a row fails, or if results differ.
//
//	go run ./bench/cpu -predict [-threads 1,2] [-run REGEXP] [-md FILE] [-update docs/TIMES.md]
//
// compares the times of kernels with those that the cost model predicts on the machine as dmir calibrate measures it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"dmir/bench/record"
	_ "dmir/compile/target/all"
	"dmir/gpu/device"
)

// options are the command line's.
type options struct {
	threads  []int
	only     *regexp.Regexp
	python   string
	here     string
	dmir     string
	models   string
	budget   time.Duration
	rounds   int
	slowest  time.Duration
	steps    bool
	progress *log.Logger
}

func main() {
	log.SetFlags(0)
	threads := flag.String("threads", "1,2", "numbers of threads, separated by commas")
	only := flag.String("run", "", "the rows whose names match (default: all)")
	o := options{progress: log.New(os.Stderr, "", 0)}
	flag.StringVar(&o.python, "python", "build/bench-cpu/bin/python", "Python with the packages of requirements.txt")
	flag.StringVar(&o.here, "here", "bench/cpu", "this command's folder")
	flag.StringVar(&o.dmir, "dmir", "build/dmir", "dmir, which imports models")
	flag.StringVar(&o.models, "models", "../shared/conformance/models", "folder with models in ONNX")
	flag.DurationVar(&o.budget, "budget", 15*time.Second, "time for the samples of a row, of which there are at least 3")
	flag.IntVar(&o.rounds, "rounds", 15, "most samples of a row")
	flag.DurationVar(&o.slowest, "reference", time.Minute, "longest run of the reference executor; 0: it does not run")
	flag.BoolVar(&o.steps, "steps", false, "print the time of each step on stderr")
	asJSON := flag.String("json", "", "write the results to this file; MODEL and DATE in its name are replaced")
	asText := flag.String("md", "", "write the table to this file, likewise")
	predicted := flag.Bool("predict", false, "compare predicted with measured times; no peers")
	page := flag.String("update", "", "the page in which to replace the table of predicted times")
	flag.Parse()
	withFastest()
	o.only = regexp.MustCompile(*only)
	for _, s := range strings.Split(*threads, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			log.Fatalf("-threads %s: %q is not a number of threads", *threads, s)
		}
		o.threads = append(o.threads, n)
	}
	if *predicted {
		if err := o.predicted(*asText, *page); err != nil {
			log.Fatal(err)
		}
		return
	}
	r, err := o.measure(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	text := r.table()
	fmt.Print(text)
	if err := errors.Join(record.JSON(record.Named(*asJSON, r.CPU, r.Date), r), record.Table(record.Named(*asText, r.CPU, r.Date), text)); err != nil {
		log.Fatal(err)
	}
	if r.failed() {
		os.Exit(1)
	}
}

// measure runs all rows with each number of threads.
func (o *options) measure(ctx context.Context) (*report, error) {
	d, _, err := device.Find("cpu")
	if err != nil {
		return nil, err
	}
	cpu, _, _ := strings.Cut(d.Title(), " (")
	r := &report{Date: time.Now().UTC().Format(time.DateOnly), CPU: cpu, Arch: d.Arch(), Peers: map[string]string{}, Missing: map[string]string{}}
	with := newPeers(o, r)
	defer with.close()
	dir, err := os.MkdirTemp("", "bench-cpu-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	rows, err := table(o.here, o.models)
	if err != nil {
		return nil, err
	}
	for _, w := range rows {
		if o.only.MatchString(w.name) {
			r.Rows = append(r.Rows, o.rows(ctx, d, w, with, dir)...)
			debug.FreeOSMemory()
		}
	}
	return r, nil
}

// rows measures a workload with each number of threads.
func (o *options) rows(ctx context.Context, d device.Device, w workload, with *peers, dir string) (list []*row) {
	folder := filepath.Join(dir, w.name)
	defer os.RemoveAll(folder)
	b, err := o.build(ctx, d, w, dir)
	if err != nil {
		o.progress.Printf("%s: %v", w.name, err)
		return []*row{{Name: w.name, Error: err.Error()}}
	}
	for _, n := range o.threads {
		list = append(list, o.row(ctx, b, with, n, folder))
	}
	return list
}
