// Suite runs the cases of the device suite, which scripts/gpu-prepare.sh builds:
// programs with machine code and expected results. It appends a line of JSON for
// each case when it ends, so an interrupted run keeps its results.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"dmir/compile/suite"
	"dmir/gpu/device"
	"dmir/gpu/device/nvidia"
)

func main() {
	device.Register(nvidia.Kinds()...)
	nvidia.Serve()
	log.SetFlags(0)
	cases := flag.String("cases", "build/gpu/cases", "folder of the cases, or the file of one")
	name := flag.String("device", "cuda", "the device")
	lines := flag.String("log", "", "file to append lines of JSON to")
	limit := flag.Duration("limit", 20*time.Second, "for one run of a program")
	budget := flag.Duration("budget", 2*time.Minute, "for all; what is left is skipped")
	set := flag.Int("set", 0, "which of each case's sets of inputs; cases without it are left out")
	runs := flag.Int("runs", 0, "how often a captured graph of each program is timed")
	trust := flag.Bool("trust", false, "the cases are yours: the emulator may run their C++")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *budget)
	defer cancel()
	status, err := run(ctx, *cases, *name, *lines, suite.Options{Limit: *limit, Trust: *trust, Set: *set, Runs: *runs})
	if err != nil {
		log.Print("suite: ", err)
		os.Exit(2)
	}
	os.Exit(status)
}

// begun is the first line of the log, ended the last.
type begun struct {
	Suite  string `json:"suite"` // the device
	Arch   string `json:"arch"`
	Cases  int    `json:"cases"`
	Failed string `json:"failed,omitempty"` // why the device is not available
}

type ended struct {
	Ended   string                    `json:"ended"`
	Seconds float64                   `json:"seconds"`
	Classes map[string]map[string]int `json:"classes"` // number of cases by class and outcome
}

func run(ctx context.Context, dir, name, lines string, o suite.Options) (status int, err error) {
	start := time.Now()
	to := &appender{path: lines}
	files, err := suite.Files(dir)
	if err != nil {
		return 0, err
	}
	d, _, err := device.Find(name)
	if err != nil {
		to.add(begun{Suite: name, Cases: len(files), Failed: err.Error()})
		return 0, err
	}
	if len(files) == 0 {
		return 0, fmt.Errorf("%s has no cases; scripts/gpu-prepare.sh builds them", dir)
	}
	to.add(begun{Suite: d.Title(), Arch: d.Arch(), Cases: len(files)})
	if d.Name() != "emulator" { // which is a process of its own
		far := nvidia.Isolated(d)
		defer far.Close()
		d = far
	}
	classes, all := map[string]map[string]int{}, map[string]int{}
	err = suite.Run(ctx, d, files, o, func(r suite.Report) {
		to.add(r)
		if classes[r.Class] == nil {
			classes[r.Class] = map[string]int{}
		}
		classes[r.Class][r.Outcome]++
		all[r.Outcome]++
		if r.Outcome != suite.Passed && r.Outcome != suite.Skipped {
			fmt.Printf("    %s %s (%s): %s\n", strings.ToUpper(r.Outcome), r.Case, r.Class, r.Why)
		}
	})
	if err != nil {
		return 0, err
	}
	var counts []string
	for _, how := range []string{suite.Passed, suite.Wrong, suite.Failed, suite.Faulted, suite.Hung, suite.Skipped} {
		if all[how] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", all[how], how))
		}
	}
	to.add(ended{Ended: "suite", Seconds: time.Since(start).Seconds(), Classes: classes})
	fmt.Printf("device suite on %s: %s in %.1f s\n", d.Title(), strings.Join(counts, ", "), time.Since(start).Seconds())
	if all[suite.Wrong]+all[suite.Failed]+all[suite.Faulted]+all[suite.Hung] > 0 {
		return 1, to.err
	}
	return 0, to.err
}

// appender appends lines to a file, each in one write.
type appender struct {
	path string
	err  error
}

func (a *appender) add(line any) {
	if a.path == "" || a.err != nil {
		return
	}
	text, err := json.Marshal(line)
	if err != nil {
		a.err = err
		return
	}
	f, err := os.OpenFile(a.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		a.err = err
		return
	}
	if _, a.err = f.Write(append(text, '\n')); a.err == nil {
		a.err = f.Sync()
	}
	if err := f.Close(); a.err == nil {
		a.err = err
	}
}
