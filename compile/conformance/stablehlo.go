package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"dmir/compile/interp"
	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/stablehlo"
	"dmir/internal/parallel"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// StableHLO runs the .mlir files in a folder: of each file @main and the checks in it
// or, where a file has none, each public function, all without arguments. progress is
// called after each file; it may be nil.
func StableHLO(ctx context.Context, dir string, progress func(done, total int)) (*Report, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".mlir" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no .mlir files in %s", dir)
	}
	reports := make([]*Report, len(files))
	done := make(chan int, len(files))
	go func() {
		for n := 1; n <= len(files); n++ {
			<-done
			if progress != nil {
				progress(n, len(files))
			}
		}
	}()
	parallel.Each(runtime.GOMAXPROCS(0), len(files), func(i int) {
		defer func() { done <- i }()
		name, _ := filepath.Rel(dir, files[i])
		reports[i] = new(Report)
		text, err := os.ReadFile(files[i])
		if err != nil {
			reports[i].Add(name, err)
			return
		}
		stableHLOFile(ctx, reports[i], strings.TrimSuffix(filepath.ToSlash(name), ".mlir"), string(text))
	})
	all := new(Report)
	for _, r := range reports {
		all.Passed, all.Failed, all.Unsupported = all.Passed+r.Passed, all.Failed+r.Failed, all.Unsupported+r.Unsupported
		all.Cases = append(all.Cases, r.Cases...)
	}
	all.Sort()
	return all, ctx.Err()
}

// stableHLOFile runs the functions of a file and adds a case for each to r.
func stableHLOFile(ctx context.Context, r *Report, name, text string) {
	tree := parse.File(source.New(name+".mlir", text))
	for _, d := range tree.Diags {
		if d.Severity == diag.Error {
			r.Add(name, errors.New(located(tree.Src, d)))
			return
		}
	}
	modules := lower.File(tree) // each is a case, whatever is wrong with others
	for n, m := range modules {
		title := name
		if len(modules) > 1 {
			title = fmt.Sprintf("%s/%d", name, n)
		}
		stableHLOModule(ctx, r, title, m)
	}
}

func stableHLOModule(ctx context.Context, r *Report, name string, m *ir.Module) {
	if diags := stablehlo.Import(m); len(diags) > 0 {
		err := errors.New(located(m.Src, diags[0]))
		if stablehlo.Unsupported(diags[0]) {
			err = fmt.Errorf("%w: %w", err, ErrUnsupported)
		}
		r.Add(name, err)
		return
	}
	run := func(name string, f *ir.Func) {
		_, err := interp.Run(ctx, m, f, nil, interp.Options{Threads: 1})
		r.Add(name, err)
	}
	if f := m.Func("main"); f != nil && len(f.Args) == 0 && f.Body != nil {
		run(name, f)
		return
	}
	for _, f := range m.Funcs {
		if !f.Private && f.Body != nil && len(f.Args) == 0 {
			run(name+"/"+f.Name, f)
		}
	}
}

func located(src *source.File, d diag.Diagnostic) string {
	line, col := src.Human(d.Span.Start)
	return fmt.Sprintf("%d:%d: %s[%s]: %s", line, col, d.Severity, d.Code, d.Message)
}
