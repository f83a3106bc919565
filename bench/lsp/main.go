// Command lsp compares the language server with its peer, mlir-lsp-server,
// from an editor's side: over stdio, in the same run, on the same texts.
//
//	go run ./bench/lsp [-sizes 1000,10000,100000] [-shape many,one] [-form generic,pretty] [-edits 240] [-json bench/results/FILE.json]
//	go run ./bench/lsp -sizes 100000 -shape one -edits 30 -no-peer -v            a quick measurement
//	go run ./bench/lsp -sizes 100000 -shape one -no-peer -profile cpu.out        a profile of edits
//
// Both servers read the same text of dm ops of about 160 bytes in generic form,
// in functions of 100 ops and in one function. dmir verifies them and computes
// their costs; the peer parses them and verifies what it can of unregistered ops.
// Only dmir also gets the same ops in pretty form, of the same length; its row
// is compared with the peer's row of the generic text.
//
// The time of an edit starts when its didChange is sent and ends when
// the diagnostics of its version and, for dmir, the inlay hints of the fifty
// lines around it have been read. Edits are sent one at a time, with pauses
// in which the server can start its idle work.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmir/bench/record"
)

var verbose bool

type options struct {
	sizes, shapes, forms  string
	edits, opens, asks    int
	pace                  pace
	dmir, peer, json, cpu string
	noPeer                bool
}

func main() {
	var o options
	flag.StringVar(&o.sizes, "sizes", "1000,10000,100000", "sizes of the texts in ops")
	flag.StringVar(&o.shapes, "shape", "many,one", "many: functions of 100 ops; one: one function")
	flag.StringVar(&o.forms, "form", "generic,pretty", "generic: for both servers; pretty: for dmir only")
	flag.IntVar(&o.edits, "edits", 240, "edits of each text")
	flag.IntVar(&o.opens, "opens", 5, "number of times that each text is opened, in a new process")
	flag.IntVar(&o.asks, "requests", 40, "number of times that each request is sent")
	flag.DurationVar(&o.pace.gap, "gap", 20*time.Millisecond, "pause between edits")
	flag.DurationVar(&o.pace.rest, "rest", 600*time.Millisecond, "maximum pause between groups of edits; the minimum is a third of it")
	flag.StringVar(&o.dmir, "dmir", "", "the dmir binary to measure; default: built from this tree")
	flag.StringVar(&o.peer, "peer", "mlir-lsp-server-22", "the peer's binary")
	flag.BoolVar(&o.noPeer, "no-peer", false, "measure only dmir")
	flag.StringVar(&o.json, "json", "", "write the results to this file")
	flag.StringVar(&o.cpu, "profile", "", "write a CPU profile of the edits to this file; for one size, shape and form, with -no-peer")
	flag.BoolVar(&verbose, "v", false, "print every edit")
	serve := flag.String("serve", "", "run the server and write its profile to this file (for internal use)")
	flag.Parse()
	debug.SetGCPercent(400) // reduce garbage collection in the client, which is not measured
	var err error
	if *serve != "" {
		err = serveProfiled(*serve)
	} else {
		err = run(&o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lsp:", err)
		os.Exit(1)
	}
}

// row holds the results of both servers for one text.
type row struct {
	Ops    int                `json:"ops"`
	Shape  string             `json:"shape"`
	Form   string             `json:"form"`
	Bytes  int                `json:"bytes"`
	Dmir   *measured          `json:"dmir"`
	Peer   *measured          `json:"peer,omitempty"` // of the generic text
	Ratios map[string]float64 `json:"ratios,omitempty"`
}

type results struct {
	Date    string `json:"date"`
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	Go      string `json:"go"`
	Dmir    string `json:"dmir"`
	Peer    string `json:"peer,omitempty"`
	Command string `json:"command"`
	Rows    []*row `json:"rows"`
}

func run(o *options) error {
	dir, err := os.MkdirTemp("", "dmir-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	subjects, err := o.subjects(dir)
	if err != nil {
		return err
	}
	res := results{
		Date: time.Now().UTC().Format(time.DateOnly), CPU: record.Processor(), Cores: runtime.NumCPU(), Go: runtime.Version(),
		Dmir: revision(), Command: "go run ./bench/lsp " + strings.Join(os.Args[1:], " "),
	}
	fmt.Printf("%s, %d cores, %s\n%s\n", res.CPU, res.Cores, res.Go, res.Dmir)
	if !o.noPeer {
		res.Peer = record.Version(subjects[1].argv[0])
		fmt.Println(res.Peer)
	}
	printHead()
	for size := range strings.SplitSeq(o.sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 100 {
			return fmt.Errorf("%q is not a number of ops of at least 100", size)
		}
		for shape := range strings.SplitSeq(o.shapes, ",") {
			perFunc, ok := map[string]int{"many": 100, "one": n}[shape]
			if !ok {
				return fmt.Errorf("unknown shape %q", shape)
			}
			var peer *measured
			for _, f := range []form{generic, pretty} {
				if !slices.Contains(strings.Split(o.forms, ","), f.name) {
					continue
				}
				r, err := o.measure(subjects, f, n, perFunc)
				if err != nil {
					return fmt.Errorf("%d ops, %s: %w", n, shape, err)
				}
				r.Ops, r.Shape, r.Form = n, shape, f.name
				if r.Peer != nil {
					peer = r.Peer
				}
				r.compare(peer)
				r.print(peer)
				res.Rows = append(res.Rows, r)
			}
		}
	}
	printDetails(res.Rows)
	return record.JSON(o.json, res)
}

// subjects returns the servers to measure, dmir first.
func (o *options) subjects(dir string) ([]*subject, error) {
	dmir := &subject{name: "dmir", argv: []string{o.dmir, "lsp"}, hints: true}
	switch {
	case o.cpu != "":
		if !o.noPeer || strings.Contains(o.sizes+o.shapes, ",") {
			return nil, errors.New("-profile is for one size and shape, with -no-peer")
		}
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		o.opens = 1
		dmir.argv, dmir.prof = []string{self, "-serve", o.cpu}, new(profile)
	case o.dmir == "":
		path := filepath.Join(dir, "dmir")
		if out, err := exec.Command("go", "build", "-o", path, "dmir").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build: %w\n%s", err, out)
		}
		dmir.argv[0] = path
	}
	if o.noPeer {
		return []*subject{dmir}, nil
	}
	path, err := exec.LookPath(o.peer)
	if err != nil {
		return nil, fmt.Errorf("%w (install mlir-22-tools, or -no-peer)", err)
	}
	return []*subject{dmir, {name: "peer", argv: []string{path, "--log=error"}}}, nil
}

// measure measures opening, edits and requests for the servers that read a form.
func (o *options) measure(subjects []*subject, f form, n, perFunc int) (*row, error) {
	text := f.program(n, perFunc)
	if f.name == pretty.name {
		subjects = subjects[:1]
	}
	r := &row{Bytes: len(text), Dmir: new(measured)}
	out := []*measured{r.Dmir}
	if len(subjects) > 1 {
		r.Peer = new(measured)
		out = append(out, r.Peer)
	}
	clients, err := opens(subjects, text, o.opens, out)
	if err != nil {
		return nil, err
	}
	for i, s := range subjects {
		doc, err := s.edits(clients[i], text, o.edits, o.pace, out[i])
		if err == nil {
			err = s.requests(clients[i], doc, o.asks, out[i])
		}
		if err == nil {
			err = clients[i].stop()
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

func revision() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "dmir"
	}
	return "dmir " + strings.TrimSpace(string(out))
}
