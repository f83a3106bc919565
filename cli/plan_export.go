package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"dmir/analysis/plan"
	"dmir/analysis/plan/export"
	"dmir/analysis/plan/present"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	"dmir/base/atomicfile"
	"dmir/base/escape"
	"dmir/dialect/print"
	"dmir/dialect/shard"
	"dmir/syntax/source"
)

// format is that of --export, nil without the flag.
func (c planCmd) format() (*export.Format, error) {
	if c.Export == "" {
		return nil, nil
	}
	f := export.Lookup(c.Export)
	if f == nil {
		help := suggested(c.Export, export.Names(), "the formats are "+strings.Join(export.Names(), ", "))
		return nil, &failure{"DM612", "--export " + c.Export, "is no format", help}
	}
	switch {
	case c.Write || c.Diff:
		return nil, &failure{"DM612", "--export " + c.Export, "writes a file for another tool, and --write and --diff are about the program", "remove one of them; -o names the file"}
	case c.Output != "" && c.Output != "-" && sameFile(c.Output, c.File):
		return nil, &failure{"DM612", "--output " + c.Output, "is the program itself", "name another file"}
	}
	return f, nil
}

// dialect is p as text in the dialect, in which a plan can be written: p itself unless it was imported. Arguments and ops keep
// their places in the program that was traced.
func (c planCmd) dialect(a *app, p *program.Program) (*program.Program, error) {
	if !p.Imported {
		return p, nil
	}
	text, err := await(a.ctx, func() (string, error) { return print.Sections(p.Modules, print.Locations) })
	if err != nil {
		return nil, err
	}
	return c.checked(a, source.New(p.Src.Path, text), optionsOf(p))
}

// optionsOf are the options of another program for what p is for.
func optionsOf(p *program.Program) program.Options {
	return program.Options{Target: p.Target, F32Products: p.F32Products, Bind: p.Bind, Config: p.Config, Arrays: p.Arrays, Compiled: p.Compiled}
}

// own reports whether the plan that is exported is that of the program's text: it states one, and no other one is asked for.
func (c planCmd) own(r *request.Request) bool {
	if c.Export == "" || c.Apply > 0 || c.settingFlags != (settingFlags{}) || !export.Stated(r.Module, r.Func) {
		return false
	}
	on, _ := shard.MeshOf(r.Module, r.Func)
	return c.Devices == "" || on != nil && on.Devices() == r.Options.Devices
}

// exported writes the plan that the text of p states.
func (c planCmd) exported(a *app, f *export.Format, p *program.Program, r *request.Request, chosen *plan.Plan, search func(plan.Setting) (*plan.Plan, error)) error {
	s := export.Source{Program: p, Module: r.Module, Func: r.Func, Options: r.Options, Plan: chosen, Planned: c.File}
	if chosen != nil {
		s.Summary, s.Search = present.Sentence(chosen), search
		s.Planned, s.Writes = c.writing(r)
	}
	data, err := await(a.ctx, func() ([]byte, error) { return encoded(a.ctx, f, s) })
	if err != nil {
		if a.ctx.Err() != nil {
			return a.ctx.Err()
		}
		return c.failed(a, p, r, err)
	}
	if c.Output == "" || c.Output == "-" {
		_, err = a.stdout.Write(data)
		return err
	}
	err = atomicfile.WriteFile(c.Output, 0o644, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return cannotWrite(c.Output, err)
	}
	what := "the program's own plan"
	if chosen != nil {
		what = fmt.Sprintf("plan %d: %s", max(c.Apply, 1), present.Sentence(chosen))
	}
	escape.Fprintf(a.stderr, "%s: %s\n", c.Output, what)
	return nil
}

func encoded(ctx context.Context, f *export.Format, s export.Source) ([]byte, error) {
	described, err := export.Read(ctx, s)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = f.Write(&b, described)
	return b.Bytes(), err
}

// exportFound writes the plan of a search that was chosen: by way of the program's text with that plan.
func (c planCmd) exportFound(a *app, f *export.Format, p *program.Program, r *request.Request, found *plan.Result) error {
	chosen := found.Plans[max(c.Apply, 1)-1]
	planned, err := c.planned(a, p, found, chosen)
	if err != nil {
		return err
	}
	m, fn, err := request.Step(planned, r.Func.Name)
	if err != nil {
		return err
	}
	search := func(fix plan.Setting) (*plan.Plan, error) {
		again := *r
		again.Options.Top, again.Options.Fix, again.Options.Progress = 1, fix, nil
		found, err := again.Search(a.ctx)
		if err != nil {
			return nil, err
		}
		return found.Plans[0], nil
	}
	with := *r
	with.Program, with.Module, with.Func = planned, m, fn
	return c.exported(a, f, planned, &with, chosen, search)
}

// writing is the file for the program with the plan that is exported, beside the program, and the commands that write it.
func (c planCmd) writing(r *request.Request) (file string, commands []string) {
	base := strings.TrimSuffix(c.File, filepath.Ext(c.File))
	if c.File == "-" {
		base = "step"
	}
	file = base + ".planned.dmir"
	from := c.File
	if filepath.Ext(from) != ".dmir" {
		from = base + ".dmir"
		commands = append(commands, "dmir import --locations -o "+export.ShellWord(from)+" "+export.ShellWord(c.File))
	}
	words := []string{"dmir", "plan", "--devices", fmt.Sprint(r.Options.Devices), "--target", r.Options.Machine.Name}
	text := func(flag, value string) {
		if value != "" {
			words = append(words, "--"+flag, value)
		}
	}
	number := func(flag string, n int) {
		if n > 0 {
			text(flag, fmt.Sprint(n))
		}
	}
	text("func", c.Func)
	text("batch", c.Batch)
	text("memory", c.Memory)
	for _, b := range c.Bind {
		text("bind", b)
	}
	for _, a := range plan.Setting(c.settingFlags).Axes() {
		number(a.Name, a.Size)
	}
	number("chunks", c.Chunks)
	number("microbatches", c.Microbatches)
	text("schedule", c.Schedule)
	text("recompute", c.Recompute)
	text("states", c.States)
	if c.Apply > 1 {
		number("apply", c.Apply)
	}
	for i, w := range words {
		words[i] = export.ShellWord(w)
	}
	return file, append(commands, strings.Join(append(words, "-o", export.ShellWord(file), export.ShellWord(from)), " "))
}
