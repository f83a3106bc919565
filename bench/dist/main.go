// Command dist compares the bytes that devices send in programs that dmir divides with those that they
// send after XLA's partitioner, for the same shardings.
//
//	go run ./bench/dist [-md bench/results/dist-DATE.md] [-json bench/results/dist-DATE.json] PYTHON
//
// PYTHON is a Python with JAX. testdata holds the programs: functions of whole tensors, and what JAX prints
// of others (programs.py). Each is run on one device and divided, on the reference executor; exported, whole
// and as what one device runs, on eight CPU devices of JAX; and as JAX has printed it. The results are compared
// before bytes are counted. It exits with status 1 if results differ, and if dmir sends more.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmir/analysis/units"
	"dmir/bench/record"
)

type report struct {
	Date string `json:"date"`
	JAX  string `json:"jax"`
	Rows []*row `json:"rows"`
}

func main() {
	log.SetFlags(0)
	here := flag.String("here", "bench/dist", "this command's folder")
	only := flag.String("run", "", "the programs, separated by commas (default: all)")
	text := flag.Bool("text", false, "print what one device runs")
	verbose := flag.Bool("v", false, "print the messages of JAX on stderr")
	asJSON := flag.String("json", "", "write the results to this file")
	asText := flag.String("md", "", "write the table to this file")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: dist [flags] PYTHON")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	rep := &report{Date: time.Now().UTC().Format(time.DateOnly)}
	more, err := rep.fill(context.Background(), flag.Arg(0), *here, *only, *text, *verbose)
	if err != nil {
		log.Fatal(err)
	}
	date := strings.NewReplacer("DATE", rep.Date)
	if err := record.JSON(date.Replace(*asJSON), rep); err != nil {
		log.Fatal(err)
	}
	if err := record.Table(date.Replace(*asText), rep.table()); err != nil {
		log.Fatal(err)
	}
	fmt.Print(rep.table())
	if len(more) > 0 {
		log.Fatalf("dmir sends more than XLA: %s", strings.Join(more, ", "))
	}
}

// fill measures the programs, and returns those for which dmir sends more.
func (r *report) fill(ctx context.Context, python, here, only string, text, verbose bool) (more []string, err error) {
	folder, err := os.MkdirTemp("", "dist")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	j, err := startJAX(python, filepath.Join(here, "peer.py"), folder, devices, verbose)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	r.JAX = j.version
	for _, file := range files(filepath.Join(here, "testdata")) {
		d, err := load(ctx, file)
		if err != nil {
			return nil, err
		}
		if only != "" && !slices.Contains(strings.Split(only, ","), d.name) {
			continue
		}
		if text {
			fmt.Printf("// %s\n%s", d.name, d.text)
		}
		row, err := measure(ctx, j, d)
		if err != nil {
			return nil, err
		}
		if r.Rows = append(r.Rows, row); row.more() {
			more = append(more, d.name)
		}
	}
	return more, nil
}

// devices is how many the meshes of all programs have.
const devices = 8

// table is the rows in Markdown.
func (r *report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, JAX %s, %d devices. Bytes that a device sends.\n\n", r.Date, r.JAX, devices)
	b.WriteString("| program | dmir | by axis | XLA | by collective | dmir/XLA |\n|---|--:|---|--:|---|--:|\n")
	unit := func(x float64) string { return units.Bytes(int64(x)) }
	for _, x := range r.Rows {
		ratio := "1.00"
		if x.XLA > 0 {
			ratio = fmt.Sprintf("%.2f", x.Ours/x.XLA)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", x.Program, unit(x.Ours), list(x.ByAxis, unit), unit(x.XLA), list(x.ByKind, unit), ratio)
	}
	return b.String()
}
