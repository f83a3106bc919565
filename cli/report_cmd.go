package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	panel "dmir/analysis/report"
	"dmir/base/atomicfile"
	"dmir/base/escape"
	"dmir/compile/patterns"
	"dmir/dialect/ir"
)

type reportCmd struct {
	targeting
	Kind         string   `help:"graph, roofline, memory, mesh, timeline (these two of functions that several devices run), pattern (of sparse tensors), diff (needs --against), or all." enum:"graph,roofline,memory,mesh,timeline,pattern,diff,all" default:"graph"`
	Func         string   `help:"Function to show (default: @main, else the first public one; of a diff all)." aliases:"function" placeholder:"NAME"`
	Undivided    bool     `help:"Show the undivided function, not what each device of its mesh runs; a page shows either."`
	Against      string   `complete:"file:dmir,mlir" help:"The version to compare with: a file, or git:REV for this file as it was." placeholder:"OLD"`
	Input        []string `help:"Take the sizes of a sparse argument from a matrix, and count and picture the pattern of what it stores." placeholder:"a=FILE.mtx" sep:"none"`
	Output       string   `short:"o" complete:"file:html,json" help:"File to write, or a folder for it; '-' is stdout (default: FILE.KIND.html here; JSON goes to stdout)." placeholder:"FILE"`
	OutputFormat string   `help:"html or json (default: as the name of the output ends, else html)." enum:",html,json" default:""`
	File         string   `arg:"" complete:"file:dmir,mlir,onnx" help:"The program; '-' is stdin."`
}

// Help is what --help adds.
func (reportCmd) Help() string {
	return "Writes the movement graph, the roofline, the memory plan, what each device of a mesh has, the timeline of a device,\n" +
		"which elements sparse tensors store, or the difference of two versions as one page that needs nothing else, and prints where it is."
}

const allKinds = "all"

// Run computes the data of all pages before it writes any.
func (c reportCmd) Run(a *app) error {
	if c.OutputFormat == "" {
		c.OutputFormat = "html"
		if filepath.Ext(c.Output) == ".json" && !isFolder(c.Output) {
			c.OutputFormat = "json"
		}
	}
	if err := c.sensible(); err != nil {
		return err
	}
	src, base, err := c.program(a, c.File)
	if err != nil {
		return err
	}
	p, err := c.checked(a, src, base)
	if err != nil {
		return err
	}
	given := map[string]patterns.Given{}
	if len(c.Input) > 0 {
		var matrices []matrix
		if p, matrices, err = a.counted(src, base, p, c.Func, c.Input); err != nil {
			return err
		}
		for _, m := range matrices {
			given[m.arg] = patterns.Given{File: filepath.Base(m.path), Elements: m.elements}
		}
	}
	ofSparse := func(fn *ir.Func) []panel.PatternAt { return patterns.Of(fn, p.Bind, given) }
	opts := panel.Options{Patterns: ofSparse, Undivided: c.Undivided, Both: c.OutputFormat == "html", Context: a.ctx}
	if opts.Sources, err = a.sources(c.File, nil); err != nil {
		return err
	}
	if c.Against != "" {
		if opts.Old, opts.OldName, err = c.version(a, c.Against, c.File, p); err != nil {
			return err
		}
	}
	if opts.Old != nil {
		err = c.bound(p, opts.Old)
	} else {
		err = c.bound(p)
	}
	if err != nil {
		return err
	}
	kinds := []string{c.Kind}
	if c.Kind == allKinds {
		kinds = panel.KindsOf(p, c.Func)
		if c.Against != "" {
			kinds = append(kinds[:len(kinds):len(kinds)], panel.KindDiff)
		}
	}
	var panels []panel.Data
	for _, kind := range kinds {
		d, err := await(a.ctx, func() (panel.Data, error) { return panel.Build(p, kind, c.Func, opts) })
		switch {
		case a.ctx.Err() != nil:
			return a.ctx.Err()
		case errors.Is(err, panel.ErrKind):
			if kind == panel.KindPattern {
				return &failure{"DM612", "--kind " + kind, "has nothing to show: " + err.Error(), "give an argument a format, #dm.csr<nnz = e>, or name another kind"}
			}
			return &failure{"DM612", "--kind " + kind, "has nothing to show: nothing in the function is divided over a mesh", "define a dm.mesh and divide a value over its axes, or name another kind"}
		case err != nil:
			return noFunction(p, err, "--func")
		}
		panels = append(panels, d)
	}
	if c.OutputFormat == "json" {
		return c.json(a, panels)
	}
	return c.pages(a, panels)
}

// sensible returns an error for flags that cannot be combined.
func (c reportCmd) sensible() error {
	switch {
	case c.Undivided && (c.Kind == panel.KindMesh || c.Kind == panel.KindTimeline || c.Kind == panel.KindDiff):
		return &failure{"DM612", "--undivided", "has no effect with --kind " + c.Kind, "name graph, roofline, memory or all"}
	case c.Kind == panel.KindDiff && c.Against == "":
		return &failure{"DM612", "--kind diff", "has nothing to compare with", "name the older version: --against OLD, or --against git:HEAD"}
	case c.Against != "" && c.Kind != panel.KindDiff && c.Kind != allKinds:
		return &failure{"DM612", "--against " + c.Against, "has no effect with --kind " + c.Kind, "add --kind diff or --kind all"}
	case c.Kind == allKinds && c.OutputFormat == "html" && c.Output != "" && !isFolder(c.Output):
		return &failure{"DM612", "--output " + c.Output, "is not a folder, but there are several pages", "name a folder that exists, or one --kind"}
	case c.Output != "" && c.Output != "-" && (sameFile(c.Output, c.File) || sameFile(c.Output, c.Against)):
		return &failure{"DM612", "--output " + c.Output, "is the program itself", "name another file"}
	case c.Against != "":
		return sensibleVersions(c.Against, c.File)
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func (c reportCmd) json(a *app, panels []panel.Data) error {
	var out any = map[string]any{"panels": panels}
	if c.Kind != allKinds {
		out = panels[0]
	}
	if c.Output == "" || c.Output == "-" {
		return writeJSON(a.stdout, out)
	}
	path := c.Output
	if isFolder(path) {
		path = filepath.Join(path, c.name(c.Kind, "json"))
	}
	return c.write(a, path, func(w io.Writer) error { return writeJSON(w, out) })
}

func (c reportCmd) pages(a *app, panels []panel.Data) error {
	pages := make([][]byte, len(panels))
	for i, d := range panels {
		var err error
		if pages[i], err = await(a.ctx, func() ([]byte, error) { return panel.HTML(d) }); err != nil {
			return err
		}
	}
	for i, d := range panels {
		path := c.Output
		switch {
		case path == "-":
			if _, err := a.stdout.Write(pages[i]); err != nil {
				return err
			}
			continue
		case path == "":
			path = c.name(d.Kind, "html")
		case isFolder(path):
			path = filepath.Join(path, c.name(d.Kind, "html"))
		}
		err := c.write(a, path, func(w io.Writer) error {
			_, err := w.Write(pages[i])
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// name returns the default name of a page: ffn.graph.html.
func (c reportCmd) name(kind, extension string) string {
	base := "stdin"
	if c.File != "-" {
		base = strings.TrimSuffix(filepath.Base(c.File), filepath.Ext(c.File))
	}
	if c.Func != "" {
		base += "." + strings.TrimPrefix(c.Func, "@")
	}
	return escape.FileName(base) + "." + kind + "." + extension
}

// write writes one page and prints its path.
func (c reportCmd) write(a *app, path string, fill func(io.Writer) error) error {
	if err := atomicfile.WriteFile(path, 0o644, fill); err != nil {
		return cannotWrite(path, err)
	}
	if a.isStdout(path) {
		return nil
	}
	_, err := escape.Fprintf(a.stdout, "%s\n", path)
	return err
}
