package cli

import (
	"errors"
	"io"
	"slices"
	"strings"

	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/base/escape"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

type lintCmd struct {
	targeting
	Fix          bool     `help:"Apply the safe fixes until none is left; for '-' the fixed text goes to stdout and the remaining findings to stderr."`
	UnsafeFixes  bool     `help:"With --fix or --diff: apply the unsafe fixes too."`
	Diff         bool     `help:"Change nothing; print what --fix would change."`
	Select       []string `complete:"rule" help:"Rules to run: codes, prefixes of codes, names, or ALL." placeholder:"DM2" sep:","`
	Ignore       []string `complete:"rule" help:"Rules to leave out." placeholder:"DM402" sep:","`
	Hints        bool     `help:"Report hints too, findings that the compiler removes by itself, and with --fix apply their fixes."`
	Strict       bool     `help:"Make ops of other dialects, which are not checked, an error."`
	OutputFormat string   `help:"text, concise, json, github or sarif." enum:"text,concise,json,github,sarif" default:"text"`
	Files        []string `arg:"" complete:"file:dmir,mlir,onnx,json" help:"Files or folders; '-' is stdin."`
}

// Help is what --help adds.
func (lintCmd) Help() string {
	return "Hints are about waste that the compiler removes by itself. They are counted, and shown with --hints, with --select\n" +
		"and where dmir.toml has 'hints = true'; they leave the exit status 0. --fix applies the fixes of what is shown; kernels\n" +
		"that it writes bind the compiler, which may find better ones of ops.\n" +
		"Silence a line with '// dmir: ignore[DM201] reason', a rule with select and ignore in dmir.toml.\n" +
		"Ops of other dialects are reported as information, which leaves the exit status 0; --strict makes them an error.\n" +
		"Exit status: 0 clean, 1 findings, 2 could not run."
}

// finding is a diagnostic with the text it is about.
type finding struct {
	src *source.File
	diag.Diagnostic
}

// counts reports whether f makes the exit status 1.
func (f finding) counts() bool { return f.Severity >= diag.Warning }

// Run lints every file it can, and fails at the end if there was one it could not.
func (c lintCmd) Run(a *app) error {
	files, err := expand(c.Files)
	if err != nil {
		return err
	}
	if bad := (lint.Options{Select: c.Select, Ignore: c.Ignore}).Unmatched(); len(bad) > 0 {
		return &failure{"DM610", strings.Join(bad, ", "), "is not a rule", "dmir explain lists the rules"}
	}
	var found []finding
	failed, changed, read, hidden := false, false, 0, 0
	unbound := &share{of: len(files)}
	for _, path := range files {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		fs, diff, left, err := c.file(a, path, unbound)
		if err != nil {
			failed = true
			var status exitStatus
			if !errors.As(err, &status) {
				a.status(err)
			}
			continue
		}
		read++
		hidden += left
		found = append(found, fs...)
		changed = changed || diff
	}
	if !c.Diff {
		var out io.Writer = a.stdout
		if c.Fix && slices.Contains(files, "-") { // stdout has the fixed text
			out = a.stderr
		}
		if err := report(out, c.OutputFormat, found, read, hidden); err != nil {
			return err
		}
	}
	switch {
	case failed:
		return exitStatus(exitFailed)
	case changed && c.Diff, slices.ContainsFunc(found, finding.counts) && !c.Diff:
		return exitStatus(exitFindings)
	}
	return nil
}

// share is how many of the files lack a symbol that --bind gives a size; the flag may
// be meant for the others.
type share struct{ n, of int }

// file returns the findings of one file that are shown, and the number of hints that
// are not.
func (c lintCmd) file(a *app, path string, unbound *share) (found []finding, changed bool, hidden int, err error) {
	src, opts, err := c.program(a, path)
	if err != nil {
		return nil, false, 0, err
	}
	rules := lint.Options{
		Select: slices.Concat(opts.Config.Lint.Select, c.Select),
		Ignore: slices.Concat(opts.Config.Lint.Ignore, c.Ignore),
	}
	if len(c.Select) > 0 { // --select overrides the file's own choice
		rules = lint.Options{Select: c.Select, Ignore: c.Ignore}
	}
	hints := c.Hints || len(c.Select) > 0
	if conf := opts.Config.Lint.Hints; conf != nil {
		hints = hints || *conf
	}
	fixes := rules
	fixes.NoHints = !hints
	load := func(src *source.File) *program.Program { return program.Load(src, opts) }
	p, err := a.analyse(src, opts)
	if err != nil {
		return nil, false, 0, err
	}
	if err := c.bound(p); err != nil {
		if unbound.n++; unbound.n == unbound.of {
			return nil, false, 0, err
		}
	}
	description, err := a.trace(path)
	if err != nil {
		return nil, false, 0, err
	}
	if p.Imported || isModel(path, nil) || description != nil {
		found, hidden, err = c.traced(a, path, p, opts, rules, hints)
		return found, false, hidden, err
	}
	if c.Fix || c.Diff {
		fixed, err := await(a.ctx, func() (*lint.Fixed, error) {
			fixed := lint.FixAll(a.ctx, p, fixes, c.UnsafeFixes, load)
			return fixed, a.ctx.Err() // an incomplete fix is an error
		})
		if err != nil {
			return nil, false, 0, err
		}
		changed = fixed.Src.Text() != src.Text()
		switch {
		case c.Diff:
			err := a.diff(src.Path, src.Text(), fixed.Src.Text())
			return nil, changed, 0, err
		case path == "-":
			if _, err := io.WriteString(a.stdout, fixed.Src.Text()); err != nil {
				return nil, false, 0, err
			}
		case changed:
			if err := write(path, fixed.Src.Text()); err != nil {
				return nil, false, 0, err
			}
			escape.Fprintf(a.stderr, "%s: %s\n", path, fixed.Summary())
			if n := fixed.Bound(); n > 0 && hints {
				escape.Fprintf(a.stderr, "%s: %s kept by the compiler, which may do better by itself: see 'compiled' of dmir cost\n", path, diag.CountAre(n, "new kernel"))
			}
		}
		p = fixed.Program
	}
	for _, d := range distinct(p.Src, p.Diags) {
		if d.Severity >= diag.Warning {
			found = append(found, finding{p.Src, d})
		}
	}
	more, err := await(a.ctx, func() ([]diag.Diagnostic, error) { return lint.Run(a.ctx, p, rules), nil })
	if err != nil {
		return nil, false, 0, err
	}
	for _, d := range more {
		if d.Code == lint.NotCounted && c.Strict {
			d.Severity = diag.Error
		}
		if d.Severity == diag.Hint && !hints {
			hidden++
			continue
		}
		found = append(found, finding{p.Src, d})
	}
	slices.SortStableFunc(found, func(x, y finding) int { return x.Span.Start - y.Span.Start })
	return found, changed, hidden, a.ctx.Err()
}
