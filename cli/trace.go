package cli

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dmir/analysis/attribution"
	"dmir/analysis/cost"
	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/base/regular"
	"dmir/compile/driver"
	"dmir/compile/pass"
	"dmir/compile/planned"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// trace is the description at path, nil if path is no description of a trace. It is read once.
func (a *app) trace(path string) (*attribution.Trace, error) {
	if filepath.Ext(path) != ".json" {
		return nil, nil
	}
	if t, known := a.traces[path]; known {
		return t, nil
	}
	t, err := a.describe(path)
	if err != nil {
		return nil, err
	}
	if a.traces == nil {
		a.traces = map[string]*attribution.Trace{}
	}
	a.traces[path] = t
	return t, nil
}

// describe reads the description at path; see trace.
func (a *app) describe(path string) (*attribution.Trace, error) {
	f, err := regular.OpenNamed(path)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	defer f.Close()
	data, err := readAll(a.ctx, io.LimitReader(f, attribution.MaxDescription), attribution.MaxDescription)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	if !strings.Contains(string(data), `"dmir_trace"`) {
		return nil, nil
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	t, err := attribution.ReadTrace(absolute, data)
	if err != nil {
		bad := &failure{"DM625", path, err.Error(), "trace the program again: python -m dmir trace MODULE:FUNCTION"}
		if at := (*attribution.FormatError)(nil); errors.As(err, &at) {
			return nil, &placed{bad, source.New(path, string(data)), source.Span{Start: max(at.Offset-1, 0), End: at.Offset}}
		}
		return nil, bad
	}
	return t, nil
}

// sources are the person's own files for the program at path: those that its trace describes, else those below the
// current folder.
func (a *app) sources(path string, unfold []string) (*attribution.Sources, error) {
	s := &attribution.Sources{Unfold: unfold}
	description := path
	if ext := filepath.Ext(path); ext != ".json" {
		description = strings.TrimSuffix(path, ext) + ".json"
	}
	t, err := a.trace(description)
	var f *failure
	switch {
	case errors.As(err, &f) && f.code == "DM601" && description != path:
		if _, err := os.Lstat(description); errors.Is(err, fs.ErrNotExist) {
			break
		}
		return nil, err
	case err != nil:
		return nil, err
	}
	if s.Trace = t; t != nil {
		s.Root = t.Root()
		return s, nil
	}
	s.Root, err = os.Getwd()
	return s, err
}

// listing is what functions of the program at path cost by parts of the Python program that it was traced from.
func (a *app) listing(path string, by string, unfold []string, p *program.Program, planned bool, funcs []*cost.Func) (*attribution.Listing, error) {
	sources, err := a.sources(path, unfold)
	if err != nil {
		return nil, err
	}
	l := &attribution.Listing{By: attribution.By(by), Target: p.Target.Title, Level: "as written", Sources: sources, Color: styleOf(a.stdout).Color}
	if planned {
		l.Level = "as compiled"
	}
	return await(a.ctx, func() (*attribution.Listing, error) {
		for _, f := range funcs {
			x, err := attribution.Of(f, p.Target, nil)
			if err != nil {
				return nil, &failure{"DM605", "--by " + by, "@" + f.Func.Name + ": " + err.Error(), bindOpen(f)}
			}
			l.Functions = append(l.Functions, x)
		}
		sources.Look(l.Functions...)
		return l, nil
	})
}

// public are the functions that are no part of those that call them.
func public(funcs []*cost.Func) []*cost.Func {
	return slices.DeleteFunc(slices.Clone(funcs), func(f *cost.Func) bool { return f.Func.Private })
}

// attribute prints what functions cost by lines, functions or modules.
func (c costCmd) attribute(a *app, p *program.Program, funcs []*cost.Func) error {
	if c.Func == "" {
		funcs = public(funcs)
	}
	l, err := a.listing(c.File, c.By, c.Unfold, p, c.Planned, funcs)
	if err != nil {
		return err
	}
	l.Top = c.Top
	_, err = await(a.ctx, func() (any, error) { return nil, c.list(a, p, l) })
	return err
}

func (c costCmd) list(a *app, p *program.Program, l *attribution.Listing) error {
	switch c.OutputFormat {
	case "json":
		level := "written"
		if c.Planned {
			level = "planned"
		}
		return writeJSON(a.stdout, l.JSON(filepath.Base(c.File), p.Target.Name, level))
	case "html":
		return l.HTML(untilDone{a.ctx, a.stdout}, filepath.Base(c.File))
	}
	return l.Text(untilDone{a.ctx, a.stdout})
}

// attribute prints what two versions of functions cost by lines, functions or modules, where that differs.
func (c diffCmd) attribute(a *app, old, p *program.Program) error {
	var sides [2]*attribution.Listing
	for i, v := range []struct {
		path string
		p    *program.Program
	}{{c.Old, old}, {c.New, p}} {
		funcs := public(v.p.Funcs)
		var err error
		if c.Planned {
			if funcs, err = planAll(a, v.p, funcs, false); err != nil {
				return err
			}
		}
		if sides[i], err = a.listing(v.path, c.By, nil, v.p, c.Planned, funcs); err != nil {
			return err
		}
	}
	was, is := sides[0], sides[1]
	var all []attribution.CompareJSON
	for _, now := range is.Functions {
		i := slices.IndexFunc(was.Functions, func(f *attribution.Function) bool { return f.Name == now.Name })
		if i < 0 {
			continue
		}
		x := &attribution.Comparison{By: attribution.By(c.By), Name: now.Name, Old: was.Functions[i], New: now, Top: c.Top}
		x.Changes = attribution.Compare(x.By, x.Old, x.New, was.Sources, is.Sources)
		if c.OutputFormat == "json" {
			all = append(all, x.JSON(was, is))
			continue
		}
		if err := x.Text(untilDone{a.ctx, a.stdout}, is, "old", "new"); err != nil {
			return err
		}
	}
	if c.OutputFormat == "json" {
		return writeJSON(a.stdout, map[string]any{"by": c.By, "target": p.Target.Name, "functions": all})
	}
	return nil
}

// attribute prints what was measured by lines, functions or modules.
func (c runCmd) attribute(a *app, p *program.Program, f *cost.Func, res *driver.Result) error {
	times := measured(res)
	if d, _, err := driver.Choose(res.Device); err == nil && d != nil && times == nil {
		g, err := await(a.ctx, func() (*cost.Func, error) { return planned.For(a.ctx, p, f.Func, p.Target, d.Arch()) })
		if err != nil {
			return err
		}
		f, times = g, measuredKernels(g, res.Kernels)
	}
	if times == nil {
		return &failure{"DM612", "--by " + c.By, "needs the time of each op, and " + res.Device + " does not measure it", "add --device cpu or --device reference"}
	}
	sources, err := a.sources(c.File, nil)
	if err != nil {
		return err
	}
	x, err := attribution.Of(f, p.Target, times)
	if err != nil {
		return &failure{"DM605", "--by " + c.By, "@" + f.Func.Name + ": " + err.Error(), bindOpen(f)}
	}
	sources.Look(x)
	l := &attribution.Listing{By: attribution.By(c.By), Target: res.Device, Level: "measured", Functions: []*attribution.Function{x}, Sources: sources, Color: styleOf(a.stdout).Color}
	if c.OutputFormat == "json" {
		return writeJSON(a.stdout, l.JSON(filepath.Base(c.File), p.Target.Name, "measured"))
	}
	return l.Text(untilDone{a.ctx, a.stdout})
}

// measuredKernels are the times of the steps of f, a function as it is compiled: those of its kernels, by their names. A kernel
// that is one of several of a step, or a copy for one, counts as a part of it.
func measuredKernels(f *cost.Func, kernels []driver.Kernel) map[*ir.Op]int64 {
	type step struct{ own, in *ir.Op } // and the one of the function's own block that holds it
	steps := map[string]step{}
	for _, e := range f.Entries {
		ir.Walk([]*ir.Op{e.Op}, func(o *ir.Op) bool {
			if name := o.Str(pass.NameAttr); name != "" {
				steps[name] = step{o, e.Op}
			}
			return o.Name != op.Kernel
		})
	}
	find := func(i int) (step, bool) {
		for name := kernels[i].Name; name != ""; name = name[:max(strings.LastIndexByte(name, '_'), 0)] {
			if s, known := steps[name]; known {
				return s, true
			}
		}
		return step{}, false
	}
	var times map[*ir.Op]int64
	for i, k := range kernels {
		s, known := find(i)
		for next := i + 1; !known && next < len(kernels); next++ { // a copy is for what follows
			s, known = find(next)
		}
		if !known || k.MeasuredNs <= 0 {
			continue
		}
		if times == nil {
			times = map[*ir.Op]int64{}
		}
		ns := int64(math.Round(k.MeasuredNs))
		if times[s.in] += ns; s.own != s.in {
			times[s.own] += ns
		}
	}
	return times
}

// traced are the findings in a program of another tool, at the lines of the Python program that it was traced from; what has no
// such line is left out, since the text is the tool's own.
func (c lintCmd) traced(a *app, path string, p *program.Program, opts program.Options, rules lint.Options, hints bool) (found []finding, hidden int, err error) {
	for _, d := range distinct(p.Src, p.Diags) {
		if d.Severity >= diag.Warning {
			found = append(found, finding{p.Src, d})
		}
	}
	if p.HasErrors() {
		return found, 0, nil
	}
	sources, err := a.sources(path, nil)
	if err != nil {
		return nil, 0, err
	}
	if p.Imported {
		text, err := await(a.ctx, func() (string, error) { return print.Sections(p.Modules, print.Locations) })
		if err != nil {
			return nil, 0, &failure{"DM619", p.Src.Path, err.Error(), ""}
		}
		if p, err = a.analyse(source.New(p.Src.Path, text), opts); err != nil {
			return nil, 0, err
		}
	}
	at, err := await(a.ctx, func() ([]attribution.Finding, error) {
		return sources.Findings(p, lint.Run(a.ctx, p, rules)), a.ctx.Err()
	})
	for _, f := range at {
		if f.Severity == diag.Hint && !hints {
			hidden++
			continue
		}
		found = append(found, finding{f.Src, f.Diagnostic})
	}
	return found, hidden, err
}

// bindOpen says how to give the sizes that a function leaves open.
func bindOpen(f *cost.Func) string {
	return "give sizes with --bind " + strings.Join(f.Unbound(), "=…,") + "=…"
}
