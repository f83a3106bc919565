package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"dmir/analysis/units"
	"dmir/base/escape"
	"dmir/compile/driver"
	"dmir/compile/pass"
	"dmir/compile/target"
	"dmir/dialect/op"
	"dmir/gpu/artifact"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// text prints for each launch what it is and which resources it takes.
func (c compileCmd) text(a *app, builds []driver.Compiled, archs []string, took time.Duration) error {
	parts := partsOf(builds)
	for i, b := range parts {
		p := b.Program
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		if of := partName(builds, parts, i); of != "" {
			escape.Fprintf(a.stdout, "%s:\n", of)
		}
		w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "STEP\tCLASS\tLAUNCH\tREGISTERS\tSHARED\tMOVED\tTIME\tLINES")
		for j, n := range p.Times() {
			s := &p.Steps[j]
			moved, predicted := units.Bytes(artifact.Repeated(s.ReadBytes+s.WrittenBytes, n)), units.Time(s.TimeNs*float64(n))
			if s.Decides() {
				escape.Fprintf(w, "%s\t%s\t%s\t\t\t\t\t\n", s.Name, string(s.Kind), partsText(&s.Decision, s.Kind))
				continue
			}
			k := p.KernelOf(s)
			if k == nil {
				lines := ""
				if s.Kind == artifact.StepCollective {
					lines = diag.Ranges(s.Lines)
					moved += ", sends " + units.Bytes(artifact.Repeated(p.Sent(&s.Collective), n))
				}
				escape.Fprintf(w, "%s\t%s\t\t\t\t%s\t%s\t%s\n", repeated(s.Name, n), string(s.Kind), moved, predicted, lines)
				continue
			}
			escape.Fprintf(w, "%s\t%s\t%s × %d\t%s\t%s\t%s\t%s\t%s\n", repeated(s.Name, n), k.Class, gridText(s.Launch.Grid), k.Block.Threads,
				registers(b.Code, k.Name), units.Bytes(int64(k.Block.Shared+static(b.Code, k.Name))), moved, predicted, diag.Ranges(p.LinesOf(s)))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	p := builds[0].Program
	var names []string
	kernels, steps, moved := 0, 0, int64(0)
	for i, b := range parts {
		if i < len(p.Parts()) {
			kernels, steps, moved = kernels+len(b.Program.Kernels), steps+len(b.Program.Steps), moved+movedBy(b.Program)
		}
		for _, r := range b.Code {
			if !slices.Contains(names, r.Arch) {
				names = append(names, r.Arch)
			}
			for _, k := range r.Usage {
				if !k.Spills() {
					continue
				}
				escape.Fprintf(a.stderr, "dmir: warning: kernel %s for %s spills registers: %d bytes written, %d read by each thread\n", k.Name, r.Arch, k.SpillStores, k.SpillLoads)
			}
		}
	}
	with := ""
	if len(names) > 0 {
		with = " for " + strings.Join(names, ", ") + " by " + compilerOf(builds)
	}
	stages := ""
	if n := len(p.Stages); n > 0 {
		stages = fmt.Sprintf(" in %s along %s", diag.Count(n, "stage"), p.Divided.Pipeline)
	}
	escape.Fprintf(a.stdout, "\ncompiled @%s%s%s in %s: %s, %s, %s predicted, %s moved, %s of memory\n", p.Name, stages, with,
		units.Time(float64(took.Nanoseconds())), diag.Count(kernels, "kernel"), diag.Count(steps, "step"), units.Time(p.Predicted()), units.Bytes(moved), units.Bytes(p.Workspace))
	for i, b := range parts {
		name := "@" + b.Program.Name
		if i >= len(p.Parts()) {
			name += " for " + b.Program.Arch()
		}
		for _, g := range b.Gaps {
			line := gapText(name, c.src, g)
			if more := movedBy(b.Program) - g.Bytes; len(b.Gaps) == 1 && more > 0 {
				line += fmt.Sprintf("; %s of partial results besides", units.Bytes(more))
			}
			escape.Fprintf(a.stdout, "%s\n", line)
		}
	}
	if c.Output != "" {
		escape.Fprintf(a.stdout, "  → %s\n", c.Output)
	} else {
		escape.Fprintf(a.stdout, "no file is written; name one with -o, such as -o %s.dmx, to run it\n", p.Name)
	}
	return nil
}

// partsOf are the programs of all builds that devices run.
func partsOf(builds []driver.Compiled) (out []driver.Compiled) {
	for _, b := range builds {
		out = append(out, b.Parts()...)
	}
	return out
}

// partName heads the table of part i of builds: which stage, and for which architecture where there are several
// programs; empty where there is one table.
func partName(builds, parts []driver.Compiled, i int) string {
	p := parts[i].Program
	alone := ""
	if i >= len(builds[0].Program.Parts()) {
		alone = "for " + p.Arch() + " alone"
	}
	if builds[0].Program.Stages == nil {
		return alone
	}
	if alone != "" {
		alone = " " + alone
	}
	return "@" + p.Name + alone
}

// movedBy is what the steps of p move in a run.
func movedBy(p *artifact.Program) int64 {
	var n int64
	for i, times := range p.Times() {
		n += artifact.Repeated(p.Steps[i].ReadBytes, times) + artifact.Repeated(p.Steps[i].WrittenBytes, times)
	}
	return n
}

// gapText says how far the kernels of a body may be from the best ones.
func gapText(of string, src *source.File, g pass.Gap) string {
	if g.In != nil {
		of += fmt.Sprintf(", in the %s of line %d", strings.TrimPrefix(g.In.Name, op.Prefix), lineOf(src, g))
	}
	line := fmt.Sprintf("%s: kernels of %s, bound %s, gap %.1f %%; %s moved, bound %s", of, units.Time(g.Ns), units.Time(g.LeastNs), g.Time()*100,
		units.Bytes(g.Bytes), units.Bytes(g.Minimum))
	switch {
	case g.Exact():
		line += "; exact"
	case g.Cut:
		line += "; bounded in pieces"
	}
	return line
}

// lineOf is the line of the op that g is in, from 1; 0 for the function.
func lineOf(src *source.File, g pass.Gap) int {
	if g.In == nil {
		return 0
	}
	line, _ := src.Human(g.In.Span.Start)
	return line
}

type jsonGap struct {
	InLine        int     `json:"in_line,omitempty"` // of the op whose region it is of; none: of the function
	PlannedNs     float64 `json:"planned_ns"`
	BoundNs       float64 `json:"bound_ns"`
	Gap           float64 `json:"gap"` // of the time, as a fraction
	PlannedBytes  int64   `json:"planned_bytes"`
	BoundBytes    int64   `json:"bound_bytes"`
	Exact         bool    `json:"exact"`
	BoundInPieces bool    `json:"bound_in_pieces"` // the bound leaves out kernels across the pieces
}

func jsonGaps(src *source.File, gaps []pass.Gap) []jsonGap {
	out := []jsonGap{}
	for _, g := range gaps {
		out = append(out, jsonGap{lineOf(src, g), g.Ns, g.LeastNs, g.Time(), g.Bytes, g.Minimum, g.Exact(), g.Cut})
	}
	return out
}

func compilerOf(builds []driver.Compiled) string {
	for _, b := range builds {
		for _, r := range b.Code {
			return r.Compiler
		}
	}
	return ""
}

// gridText leaves out dimensions of one block at the end.
func gridText(g artifact.Grid) string {
	switch {
	case g[2] > 1:
		return fmt.Sprintf("%d×%d×%d", g[0], g[1], g[2])
	case g[1] > 1:
		return fmt.Sprintf("%d×%d", g[0], g[1])
	}
	return strconv.Itoa(g[0])
}

// registers is the registers of a thread of the kernel, the most of all
// architectures; empty without machine code.
func registers(code []*target.Code, kernel string) string {
	most := 0
	for _, r := range code {
		k := r.Kernel(kernel)
		most = max(most, k.Registers)
	}
	if most == 0 {
		return ""
	}
	return strconv.Itoa(most)
}

// static is the static shared memory of the kernel.
func static(code []*target.Code, kernel string) int {
	most := 0
	for _, r := range code {
		k := r.Kernel(kernel)
		most = max(most, k.Shared)
	}
	return most
}

type jsonCompile struct {
	Func      string            `json:"func"`
	Compiler  string            `json:"compiler,omitempty"`
	ElapsedNs int64             `json:"elapsed_ns"`
	File      string            `json:"file,omitempty"`
	Programs  []jsonCompiled    `json:"programs"`
	Inputs    []jsonCompiledArg `json:"inputs"`
	Outputs   []jsonCompiledArg `json:"outputs"`
}

type jsonCompiled struct {
	Func           string       `json:"func,omitempty"` // of a program in stages: the stage
	Archs          []string     `json:"archs"`
	WorkspaceBytes int64        `json:"workspace_bytes"`
	Kernels        []jsonKernel `json:"kernels"`
	Steps          []jsonLaunch `json:"steps"`
	Gaps           []jsonGap    `json:"gaps"` // how far the kernels may be from the best ones
}

type jsonCompiledArg struct {
	Name  string  `json:"name"`
	Elem  string  `json:"elem"`
	Shape []int64 `json:"shape"`
	Bytes int64   `json:"bytes"`
}

type jsonKernel struct {
	Name        string      `json:"name"`
	Class       string      `json:"class"`
	Threads     int         `json:"threads"`
	SharedBytes int         `json:"shared_bytes"`
	Lines       []int       `json:"lines"`
	Usage       []jsonUsage `json:"usage"`
}

type jsonUsage struct {
	Arch            string `json:"arch"`
	Registers       int    `json:"registers"`
	SharedBytes     int    `json:"shared_bytes"`
	SpillStoreBytes int    `json:"spill_store_bytes"`
	SpillLoadBytes  int    `json:"spill_load_bytes"`
	StackBytes      int    `json:"stack_bytes"`
}

type jsonLaunch struct {
	Name         string  `json:"name"`
	Kernel       string  `json:"kernel,omitempty"` // none: a fill, or what Does describes
	Does         string  `json:"does,omitempty"`   // "copy", "loop", "branch"
	Parts        []int   `json:"parts,omitempty"`  // of a loop or a branch: how many of the steps behind it are its condition and body, its two sides
	Runs         *int64  `json:"runs,omitempty"`   // how often it runs, where that is known and not once; figures are those of one run
	Grid         []int   `json:"grid,omitempty"`
	Stream       int     `json:"stream"`
	Lines        []int   `json:"lines,omitempty"`      // of the program, those of this launch
	SentBytes    int64   `json:"sent_bytes,omitempty"` // of a collective: that leave a device
	FLOP         int64   `json:"flop"`
	ReadBytes    int64   `json:"read_bytes"`
	WrittenBytes int64   `json:"written_bytes"`
	TimeNs       float64 `json:"time_ns"`
}

func (c compileCmd) json(a *app, builds []driver.Compiled, archs []string, took time.Duration) error {
	p := builds[0].Program
	out := jsonCompile{Func: p.Name, Compiler: compilerOf(builds), ElapsedNs: took.Nanoseconds(), File: c.Output, Inputs: jsonArgs(p, p.Inputs, nil), Outputs: jsonArgs(p, p.Outputs, p.Results)}
	for _, b := range partsOf(builds) {
		j := compiledJSON(c.src, b)
		if p.Stages != nil {
			j.Func = b.Program.Name
		}
		out.Programs = append(out.Programs, j)
	}
	return writeJSON(a.stdout, out)
}

func jsonArgs(p *artifact.Program, buffers []int, names []string) []jsonCompiledArg {
	out := []jsonCompiledArg{}
	for i, b := range buffers {
		buf := &p.Buffers[b]
		arg := jsonCompiledArg{Name: buf.Name, Elem: buf.Elem, Shape: append([]int64{}, buf.Shape...), Bytes: buf.Size()}
		if i < len(names) {
			arg.Name = names[i]
		}
		out = append(out, arg)
	}
	return out
}

// repeated is a step's name with how often it runs.
func repeated(name string, n int64) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s ×%d", name, n)
}

// partsText lists the steps that a decision controls, and how often they run.
func partsText(d *artifact.Decision, kind artifact.StepKind) string {
	a, b := d.Parts[0], d.Parts[1]
	switch {
	case kind == artifact.StepBranch:
		return fmt.Sprintf("%d or %d steps", a, b)
	case kind == artifact.StepRepeat:
		return fmt.Sprintf("%d steps ×%d", b, d.Trips)
	case d.TripsKnown:
		return fmt.Sprintf("%d + %d steps ×%d", a, b, d.Trips)
	}
	return fmt.Sprintf("%d + %d steps", a, b)
}

func compiledJSON(src *source.File, b driver.Compiled) jsonCompiled {
	p := b.Program
	out := jsonCompiled{Archs: []string{}, WorkspaceBytes: p.Workspace, Kernels: []jsonKernel{}, Steps: []jsonLaunch{}, Gaps: jsonGaps(src, b.Gaps)}
	for _, m := range p.Images {
		out.Archs = append(out.Archs, m.Arch)
	}
	for _, k := range p.Kernels {
		j := jsonKernel{Name: k.Name, Class: k.Class, Threads: k.Block.Threads, SharedBytes: k.Block.Shared, Lines: k.Lines, Usage: []jsonUsage{}}
		for _, r := range b.Code {
			u := r.Kernel(k.Name)
			j.Usage = append(j.Usage, jsonUsage{r.Arch, u.Registers, u.Shared, u.SpillStores, u.SpillLoads, u.Stack})
		}
		out.Kernels = append(out.Kernels, j)
	}
	for i, n := range p.Times() {
		s := &p.Steps[i]
		j := jsonLaunch{Name: s.Name, Stream: s.Stream, Lines: s.Lines, FLOP: s.FLOP, ReadBytes: s.ReadBytes, WrittenBytes: s.WrittenBytes, TimeNs: s.TimeNs}
		if k := p.KernelOf(s); k != nil {
			j.Kernel, j.Grid = k.Name, s.Launch.Grid[:]
		} else if s.Kind != artifact.StepFill {
			j.Does = string(s.Kind)
		}
		if s.Kind == artifact.StepCollective {
			j.SentBytes = p.Sent(&s.Collective)
		}
		if s.Decides() {
			j.Parts = s.Decision.Parts[:]
		}
		if n != 1 {
			j.Runs = &n // 0 is written too
		}
		out.Steps = append(out.Steps, j)
	}
	return out
}
