// Command mliropt compares dmir with mlir-opt on the same files: 10,000 and
// 100,000 ops of about 160 bytes in generic form, in functions of 100 ops and
// in one function. Each measurement is a whole process: wall time and peak
// memory. The runs of the two programs alternate, so that their ratio is
// independent of drift in the machine's speed.
//
//	go run ./bench/mliropt [-runs 5] [-ops 10000,100000] [-json bench/results/FILE.json]
//
// dmir is this program, executed again with -stage to time one stage
// alone: parse, format (parse, format), cost (parse, lower, verify, cost).
// mlir-opt runs its nearest equivalent: parse, verify, print to /dev/null.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/bench/peak"
	"dmir/bench/record"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

func main() {
	runs := flag.Int("runs", 5, "counted runs of each command")
	ops := flag.String("ops", "10000,100000", "sizes of the files in ops")
	peer := flag.String("peer", "mlir-opt-22", "the peer")
	out := flag.String("json", "", "write the results to this file")
	stage := flag.String("stage", "", "run one stage on the file named by the argument (used by this program itself)")
	flag.Parse()
	var err error
	if *stage != "" {
		err = runStage(*stage, flag.Arg(0))
	} else {
		err = measure(*runs, *ops, *peer, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mliropt:", err)
		os.Exit(1)
	}
}

// runStage runs one stage, in the measured process.
func runStage(stage, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	src := source.New(path, string(text))
	switch stage {
	case "parse":
		if t := parse.File(src); len(t.Diags) > 0 {
			return errors.New(t.Diags[0].Message)
		}
	case "format":
		if format.File(parse.File(src)) == "" {
			return errors.New("formatted to nothing")
		}
	case "cost":
		target, ok := machine.Lookup(machine.Default)
		if !ok {
			return errors.New("no machine")
		}
		p := program.Load(src, program.Options{Target: target})
		if len(p.Diags) > 0 {
			return errors.New(p.Diags[0].Message)
		}
		for _, f := range p.Funcs {
			if n, ok := f.Moved().Int(); !ok || n == 0 {
				return errors.New("no cost")
			}
		}
	default:
		return fmt.Errorf("unknown stage %q", stage)
	}
	return nil
}

// write creates a file of n ops in generic form, perFunc in each function.
func write(path string, n, perFunc int) error {
	var b bytes.Buffer
	const t = "tensor<8x512x1024xf16>"
	for i := 0; i < n; {
		fmt.Fprintf(&b, "func.func @f%d(%%x: %s, %%y: %s) -> %s {\n", i, t, t, t)
		last := "%x"
		for j := 0; j < perFunc && i < n; j++ {
			fmt.Fprintf(&b, "  %%value_%d = \"dm.add\"(%s, %%y) : (%s, %s) -> %s loc(\"model/layer.py\":%d:17)\n", i, last, t, t, t, i+1)
			last = fmt.Sprintf("%%value_%d", i)
			i++
		}
		fmt.Fprintf(&b, "  return %s : %s\n}\n", last, t)
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// figures summarizes the runs of one command.
type figures struct {
	WallMs  float64 `json:"wall_ms"`  // median
	PeakMiB float64 `json:"peak_mib"` // largest
}

type row struct {
	Ops       int     `json:"ops"`
	Layout    string  `json:"layout"`
	Bytes     int64   `json:"bytes"`
	Stage     string  `json:"stage"`
	Dmir      figures `json:"dmir"`
	Peer      figures `json:"peer"`
	Ratio     float64 `json:"wall_ratio"` // dmir / peer, median of the pairs
	PeakRatio float64 `json:"peak_ratio"` // 0 if memory is unknown
}

type results struct {
	Date    string `json:"date"`
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	Go      string `json:"go"`
	Peer    string `json:"peer"`
	Command string `json:"command"`
	Rows    []row  `json:"rows"`
}

func measure(runs int, sizes, peer, out string) error {
	peerPath, err := exec.LookPath(peer)
	if err != nil {
		return fmt.Errorf("%w (install mlir-22-tools)", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "dmir-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	res := results{
		Date: time.Now().UTC().Format(time.DateOnly), CPU: record.Processor(), Cores: runtime.NumCPU(), Go: runtime.Version(),
		Peer: record.Version(peerPath), Command: "go run ./bench/mliropt " + strings.Join(os.Args[1:], " "),
	}
	fmt.Printf("%s, %d cores, %s\npeer: %s --allow-unregistered-dialect\n\n", res.CPU, res.Cores, res.Go, res.Peer)
	fmt.Printf("%8s %-13s %-7s %12s %12s %7s %11s %11s %7s\n", "ops", "layout", "stage", "dmir", "mlir-opt", "ratio", "dmir peak", "peer peak", "ratio")
	for size := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			return err
		}
		for _, layout := range []struct {
			name    string
			perFunc int
		}{{"100 a function", 100}, {"one function", n}} {
			path := filepath.Join(dir, fmt.Sprintf("%d-%d.mlir", n, layout.perFunc))
			if err := write(path, n, layout.perFunc); err != nil {
				return err
			}
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			for _, stage := range []string{"parse", "format", "cost"} {
				r := row{Ops: n, Layout: layout.name, Bytes: info.Size(), Stage: stage}
				err := r.measure(runs,
					[]string{self, "-stage", stage, path},
					[]string{peerPath, "--allow-unregistered-dialect", path, "-o", os.DevNull})
				if err != nil {
					return err
				}
				fmt.Printf("%8d %-13s %-7s %9.0f ms %9.0f ms %7.2f %7.0f MiB %7.0f MiB %7.2f\n",
					r.Ops, r.Layout, r.Stage, r.Dmir.WallMs, r.Peer.WallMs, r.Ratio, r.Dmir.PeakMiB, r.Peer.PeakMiB, r.PeakRatio)
				res.Rows = append(res.Rows, r)
			}
		}
	}
	return record.JSON(out, res)
}

// measure alternates the two commands, after one warm-up run of each.
func (r *row) measure(runs int, dmir, peer []string) error {
	var a, b, ratio []float64
	for i := range runs + 1 {
		wa, ma, err := timed(dmir)
		if err != nil {
			return err
		}
		wb, mb, err := timed(peer)
		if err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		a, b, ratio = append(a, wa), append(b, wb), append(ratio, wa/wb)
		r.Dmir.PeakMiB, r.Peer.PeakMiB = max(r.Dmir.PeakMiB, ma), max(r.Peer.PeakMiB, mb)
	}
	r.Dmir.WallMs, r.Peer.WallMs, r.Ratio = median(a), median(b), median(ratio)
	if r.Peer.PeakMiB > 0 { // JSON has no NaN
		r.PeakRatio = r.Dmir.PeakMiB / r.Peer.PeakMiB
	}
	return nil
}

func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// timed runs a command and returns its wall time in ms and its peak memory in MiB.
func timed(argv []string) (wall, memory float64, err error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	wall = float64(time.Since(start).Microseconds()) / 1e3
	if err != nil {
		return 0, 0, fmt.Errorf("%v: %w\n%.400s", argv, err, out)
	}
	return wall, float64(peak.Of(cmd)) / (1 << 20), nil
}
