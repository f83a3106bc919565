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
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/dialect/stablehlo"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// StableHLO runs the programs in dir, files of StableHLO with checks of their results,
// on the reference executor. A file is a case, named as the file; a file of several
// functions to run has a case for each of them, FILE@FUNCTION.
func StableHLO(ctx context.Context, dir string, progress func(done, total int)) (*Report, error) {
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
	outcomes := make([][]outcome, len(files))
	each(ctx, len(files), progress, func(i int) { outcomes[i] = stableHLOFile(ctx, files[i]) })
	var report Report
	for _, o := range slices.Concat(outcomes...) {
		report.Add(o.name, o.err)
	}
	report.Sort()
	return &report, context.Cause(ctx)
}

// outcome is what became of a case; nil is a pass.
type outcome struct {
	name string
	err  error
}

func stableHLOFile(ctx context.Context, path string) []outcome {
	name := filepath.Base(path)
	text, err := os.ReadFile(path)
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
		return []outcome{{name, runCase(ctx, p, cases[0])}}
	}
	var out []outcome
	seen := map[string]int{} // sections may use a name again
	for _, c := range cases {
		o := outcome{name + "@" + c.Fn.Name, runCase(ctx, p, c)}
		if seen[o.name]++; seen[o.name] > 1 {
			o.name += fmt.Sprintf("#%d", seen[o.name])
		}
		out = append(out, o)
	}
	return out
}

// Run is the report of the cases of p.
func Run(ctx context.Context, p *program.Program, cases []driver.Case) *Report {
	var r Report
	for _, c := range cases {
		r.Add("@"+c.Fn.Name, runCase(ctx, p, c))
	}
	return &r
}

func runCase(ctx context.Context, p *program.Program, c driver.Case) error {
	if errs := p.ErrorsOf(c.Module, c.Fn); len(errs) > 0 {
		return firstError(p, errs, "")
	}
	_, err := interp.Run(ctx, c.Module, c.Fn, nil, interp.Options{Threads: 1})
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
