package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dmir/analysis/program"
	"dmir/base/regular"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/dialect/stablehlo"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// StableHLO runs the programs in dir, files of StableHLO with checks of their results,
// as o states. A file is a case, named as the file; a file of several
// functions to run has a case for each of them, FILE@FUNCTION.
func StableHLO(ctx context.Context, dir string, o Options) (*Report, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".mlir") {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, errors.New("holds no .mlir file")
	}
	files = o.some(files)
	outcomes := make([][]outcome, len(files))
	each(ctx, len(files), o.Progress, func(i int) { outcomes[i] = o.stableHLOFile(ctx, files[i]) })
	var report Report
	for _, c := range slices.Concat(outcomes...) {
		report.Add(c.name, c.err)
	}
	report.Sort()
	return &report, context.Cause(ctx)
}

// outcome is what became of a case; nil is a pass.
type outcome struct {
	name string
	err  error
}

func (o Options) stableHLOFile(ctx context.Context, path string) []outcome {
	name := filepath.Base(path)
	text, err := regular.ReadFile(path, maxModel)
	if err != nil {
		return []outcome{{name, err}}
	}
	src := source.New(name, string(text))
	p := program.Load(src, program.Options{})
	cases := driver.Cases(p)
	if len(cases) == 0 {
		return []outcome{{name, firstError(p, p.Diags, "the file has no function that takes nothing")}}
	}
	if len(cases) == 1 {
		return []outcome{{name, o.runCase(ctx, p, cases[0])}}
	}
	var out []outcome
	seen := map[string]int{} // sections may use a name again
	for _, c := range cases {
		ran := outcome{name + "@" + c.Fn.Name, o.runCase(ctx, p, c)}
		if seen[ran.name]++; seen[ran.name] > 1 {
			ran.name += fmt.Sprintf("#%d", seen[ran.name])
		}
		out = append(out, ran)
	}
	return out
}

// Run is the report of the cases of p.
func Run(ctx context.Context, p *program.Program, cases []driver.Case) *Report {
	var r Report
	for _, c := range cases {
		r.Add("@"+c.Fn.Name, Options{}.runCase(ctx, p, c))
	}
	return &r
}

func (o Options) runCase(ctx context.Context, p *program.Program, c driver.Case) error {
	if errs := p.ErrorsOf(c.Module, c.Fn); len(errs) > 0 {
		return firstError(p, errs, "")
	}
	_, err := o.run(ctx, c.Module, c.Fn, nil)
	var e *interp.Error
	if errors.As(err, &e) {
		return located(p.Src, e.Span, e.Msg)
	}
	return err
}

// firstError is the first of ds, all errors, with its line.
func firstError(p *program.Program, ds []diag.Diagnostic, otherwise string) error {
	for _, d := range ds {
		if d.Severity != diag.Error {
			continue
		}
		err := located(p.Src, d.Span, d.Message)
		if d.Code == stablehlo.Unsupported {
			return unsupported{err}
		}
		return err
	}
	return errors.New(otherwise)
}

func located(src *source.File, span source.Span, msg string) error {
	line, _ := src.Human(span.Start)
	return fmt.Errorf("line %d: %s", line, strings.TrimSpace(msg))
}
