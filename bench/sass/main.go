// Sass compiles the examples and prints an analysis of their machine code: for
// each kernel the issue slots of its hot part per byte that it moves, compared
// with the slots that the machine issues in that time. Kernels that violate the rules
// of package ptx are listed first. The last columns are what accesses move of global memory, in
// sectors, and of shared memory, in passes, as multiples of the least (docs/PTX.md).
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

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/compile/cuda/audit"
	"dmir/compile/driver"
	_ "dmir/compile/target/all"
	"dmir/dialect/types"
	"dmir/gpu/nvrtc"
	"dmir/gpu/ptx"
	"dmir/gpu/sass"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// sizes binds the symbolic dimensions of examples.
var sizes = map[string]int64{"b": 2, "n": 512, "h": 8, "d": 64}

func main() {
	log.SetFlags(0)
	name := flag.String("machine", "h200", "the machine; its architecture is compiled for")
	all := flag.Bool("all", false, "list kernels that are not bound by memory, too")
	least := flag.Int64("least", 1<<20, "list kernels that move so many bytes at least")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: sass [-machine h200] [-all] [-least BYTES] FILE...\n\nWithout files: examples/*.dmir.")
		flag.PrintDefaults()
	}
	flag.Parse()
	m, ok := machine.Lookup(*name)
	if !ok || m.Arch == "" {
		log.Fatalf("machine %s has no GPU", *name)
	}
	files := flag.Args()
	if len(files) == 0 {
		var err error
		if files, err = filepath.Glob("examples/*.dmir"); err != nil || len(files) == 0 {
			log.Fatal("no examples found; run in the repository, or name files")
		}
	}
	fmt.Printf("# Machine code of the examples, %s (%s)\n\n", m.Title, m.Arch)
	half := " / 2"
	if sass.Lanes(m.Arch) < 128 {
		half = "" // it issues twice as many instructions as it has lanes for
	}
	fmt.Printf("Budget: f32 peak%s / (%g · bandwidth) = %.2f issue slots of a thread for each byte (%s%s / (%g · %s)).\n\n",
		half, audit.Target, audit.SlotsPerByte(m), units.Rate(m.Peak(false, types.F32)), half, audit.Target, units.Bandwidth(m.Bandwidth))
	var over []string
	for _, file := range files {
		audits, report, err := steps(file, m)
		if err != nil {
			log.Fatalf("%s: %v", file, err)
		}
		if len(audits) == 0 {
			continue
		}
		slices.SortStableFunc(audits, func(a, b audit.Step) int { return int(b.Bytes - a.Bytes) })
		fmt.Printf("## %s\n\n", filepath.Base(file))
		fmt.Println("| kernel | class | moves | hot part | instr | slots/B | pipe | of budget | 16-byte accesses | 64-bit | f64 | tensor | bulk | local | read | written | shared |")
		fmt.Println("|---|---|--:|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
		for _, a := range audits {
			if a.Bytes < *least || !a.Memory && !*all {
				continue
			}
			fmt.Println(row(a, report.Traffic[a.Kernel]))
			if a.Memory && a.Share > 1 {
				over = append(over, fmt.Sprintf("%s of %s: %.0f %%", a.Name, filepath.Base(file), 100*a.Share))
			}
		}
		fmt.Println()
	}
	fmt.Printf("## Over the budget\n\n")
	for _, s := range over {
		fmt.Println("- " + s)
	}
	if len(over) == 0 {
		fmt.Println("None.")
	}
}

// row is the line of the table for one step, whose kernel's accesses move m.
func row(a audit.Step, m *ptx.Traffic) string {
	part, share := "all", "–"
	if a.Loop {
		part = "loop"
	}
	if a.All.Bytes > 0 {
		share = fmt.Sprintf("%.0f %%", 100*float64(a.All.Vector)/float64(a.All.Bytes))
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %d | %.2f | %s | %.0f %% | %s | %d | %d | %d | %d | %d | %.2f | %.2f | %.2f |",
		a.Name, a.Class, units.Bytes(a.Bytes), part, a.Hot.Instrs, a.PerByte, a.Hot.Pipe, 100*a.Share, share, a.Hot.Wide, a.Hot.Float64, a.All.Tensor, a.All.Bulk, a.All.Local,
		m.Read.Ratio(), m.Written.Ratio(), m.Shared.Ratio())
}

// steps compiles the only function of a file; a file with several, or one that
// is not for devices, gives nothing.
func steps(file string, m *machine.Machine) ([]audit.Step, *ptx.Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	p := program.Load(source.New(file, string(text)), program.Options{})
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			return nil, nil, fmt.Errorf("%s", d.Message)
		}
	}
	module, fn, err := driver.Pick(p, "")
	if err != nil || strings.Contains(string(text), "dm.while") {
		return nil, nil, nil
	}
	ctx := context.Background()
	built, err := driver.Build(ctx, module, fn, driver.BuildOptions{Machine: m, Arch: m.Arch, Bind: sizes})
	if err != nil {
		return nil, nil, err
	}
	code, err := nvrtc.CompileProgram(ctx, built, m.Arch, nvrtc.Options{})
	if err != nil {
		return nil, nil, err
	}
	report, err := ptx.Program(built, code.PTX, code.Kernels)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range report.Findings {
		fmt.Printf("- **%s**\n", f)
	}
	listing, err := nvrtc.Disassemble(ctx, code.Cubin)
	if err != nil {
		return nil, nil, err
	}
	audits, err := audit.Steps(built, listing, m)
	return audits, report, err
}
