// Command corpus measures `dmir fmt --check` and `dmir lint` over the
// conformance inputs, MLIR files of a dozen projects, and mlir-opt over the
// same files.
//
//	go run ./bench/corpus [-runs 3] [-dir ../shared/conformance] [-json bench/results/FILE.json]
//
// What each command does with a file:
//
//	fmt --check   parses, formats, compares; prints which files would change
//	lint          parses, lowers, verifies, computes costs, runs every rule; prints the findings
//	mlir-opt      --allow-unregistered-dialect --split-input-file: parses, verifies, prints to /dev/null
//
// dmir reads every op of every dialect. mlir-opt stops in a section at the first op
// in the pretty form of a dialect that it does not know, which is early in most
// of these files. So the files that mlir-opt reads to the end are also measured
// separately ("read by both"). Each set is measured with one process for
// each file and with one process for all; mlir-opt then reads one file with all
// of them as sections.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"dmir/bench/record"
)

func main() {
	runs := flag.Int("runs", 3, "runs of each command, in turn")
	dir := flag.String("dir", "../shared/conformance", "the files")
	peer := flag.String("peer", "mlir-opt-22", "the peer")
	out := flag.String("json", "", "write the results to this file")
	flag.Parse()
	if err := run(*runs, *dir, *peer, *out); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

type row struct {
	Files     string  `json:"files"` // "all" or "read by both"
	Count     int     `json:"count"`
	Bytes     int64   `json:"bytes"`
	Processes string  `json:"processes"` // one, or one per file
	Command   string  `json:"command"`
	WallMs    float64 `json:"wall_ms"`
	Ratio     float64 `json:"ratio"` // to mlir-opt on the same files in as many processes
	Failed    int     `json:"failed"`
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

// files is a set of inputs, and one file with all of them for the peer.
type files struct {
	name  string
	paths []string
	bytes int64
	whole string
}

func run(runs int, dir, peer, out string) error {
	peer, err := exec.LookPath(peer)
	if err != nil {
		return fmt.Errorf("%w (install mlir-22-tools)", err)
	}
	tmp, err := os.MkdirTemp("", "dmir-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	dmir := filepath.Join(tmp, "dmir")
	if text, err := exec.Command("go", "build", "-o", dmir, "dmir").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, text)
	}
	opt := []string{peer, "--allow-unregistered-dialect", "--split-input-file", "-o", os.DevNull}

	all, err := gather(dir)
	if err != nil {
		return err
	}
	var read []string
	for _, path := range all {
		if ok, err := succeeds(append(opt, path)); err != nil {
			return err
		} else if ok {
			read = append(read, path)
		}
	}
	res := results{
		Date: time.Now().UTC().Format(time.DateOnly), CPU: record.Processor(), Cores: runtime.NumCPU(), Go: runtime.Version(),
		Peer: record.Version(peer), Command: "go run ./bench/corpus " + strings.Join(os.Args[1:], " "),
	}
	fmt.Printf("%s, %d cores, %s\npeer: %s\n\n", res.CPU, res.Cores, res.Go, res.Peer)
	fmt.Printf("%-13s %6s %9s %-10s %-11s %10s %7s %7s\n", "files", "", "bytes", "processes", "", "wall", "ratio", "failed")
	for _, set := range []struct {
		name  string
		paths []string
	}{{"all", all}, {"read by both", read}} {
		f, err := concatenate(filepath.Join(tmp, "all.mlir"), set.name, set.paths)
		if err != nil {
			return err
		}
		for _, single := range []bool{true, false} {
			rows, err := measure(runs, f, single, dmir, opt)
			if err != nil {
				return err
			}
			for _, r := range rows {
				fmt.Printf("%-13s %6d %9d %-10s %-11s %7.0f ms %7.3f %7d\n", r.Files, r.Count, r.Bytes, r.Processes, r.Command, r.WallMs, r.Ratio, r.Failed)
			}
			res.Rows = append(res.Rows, rows...)
		}
	}
	return record.JSON(out, res)
}

// gather lists the MLIR files in a folder, recursively.
func gather(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".mlir" {
			paths = append(paths, path)
		}
		return err
	})
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("no .mlir files in %s", dir)
	}
	return paths, err
}

// concatenate writes the files as sections of one file.
func concatenate(path, name string, paths []string) (files, error) {
	f := files{name: name, paths: paths, whole: path}
	var b strings.Builder
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			return f, err
		}
		f.bytes += int64(len(text))
		b.Write(text)
		b.WriteString("\n// -----\n")
	}
	return f, os.WriteFile(path, []byte(b.String()), 0o644)
}

// measure computes the median wall time of each command over a set of files.
func measure(runs int, f files, single bool, dmir string, opt []string) ([]row, error) {
	commands := []struct {
		name string
		argv []string
	}{{"fmt --check", []string{dmir, "fmt", "--check"}}, {"lint", []string{dmir, "lint"}}, {"mlir-opt", opt}}
	var rows []row
	for i, c := range commands {
		r := row{Files: f.name, Count: len(f.paths), Bytes: f.bytes, Processes: "one", Command: c.name}
		inputs := [][]string{f.paths}
		switch {
		case !single:
			r.Processes = "one a file"
			inputs = nil
			for _, p := range f.paths {
				inputs = append(inputs, []string{p})
			}
		case i == 2:
			inputs = [][]string{{f.whole}}
		}
		var took []float64
		for range runs {
			r.Failed = 0
			begin := time.Now()
			for _, in := range inputs {
				ok, err := succeeds(append(slices.Clip(c.argv), in...))
				if err != nil {
					return nil, err
				}
				if !ok {
					r.Failed++
				}
			}
			took = append(took, float64(time.Since(begin).Microseconds())/1e3)
		}
		slices.Sort(took)
		r.WallMs = took[len(took)/2]
		rows = append(rows, r)
	}
	for i := range rows {
		rows[i].Ratio = rows[i].WallMs / rows[len(rows)-1].WallMs
	}
	return rows, nil
}

// succeeds runs a command and discards its output. Any exit status is accepted,
// but the command must start and exit by itself.
func succeeds(argv []string) (bool, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	err := cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.Exited() {
		return false, nil
	}
	return err == nil, err
}
