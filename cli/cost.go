package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/pass"
	"dmir/compile/planned"
	"dmir/dialect/budget"
	"dmir/syntax/diag"
)

type costCmd struct {
	targeting
	deviceFlags
	Planned      bool     `help:"The table of the program as it is compiled: its kernels."`
	Func         string   `help:"Function to print (default: all)." placeholder:"NAME"`
	Input        []string `help:"Take the sizes of a sparse argument from a matrix, and count the pattern of what it stores." placeholder:"a=FILE.mtx" sep:"none"`
	By           string   `help:"Cost by the lines, functions, modules or name scopes of the Python program that FILE was traced from: line, function, module or scope." enum:",line,function,module,scope" default:"" placeholder:"PART"`
	Unfold       []string `help:"With --by, show the lines of a library of its own: flax." placeholder:"LIBRARY"`
	Sort         string   `help:"Order of the ops: line, time, moved, read, written or flop, the most first." enum:",line,time,moved,read,written,flop" default:"" placeholder:"FIGURE"`
	Top          int      `help:"List this many ops of each function only, by default those that take longest." placeholder:"N"`
	Strict       bool     `help:"Make ops of other dialects, which are not counted, an error."`
	OutputFormat string   `help:"text or json; with --by html too, a page of its own." enum:"text,json,html" default:"text"`
	File         string   `arg:"" complete:"file:dmir,mlir,onnx" help:"The program; '-' is stdin."`
}

// Help is what --help adds.
func (costCmd) Help() string {
	return fmt.Sprintf("The figures are those of the program as written, op by op; a line states those of the program as compiled.\n"+
		"Functions of more than %d ops are planned for --planned only.\n", mostPlanned) +
		"Ops of other dialects are not counted; stderr names them.\n" +
		"Exit status: 0 done, 1 there are such ops and --strict is given, 2 the program has errors or cannot be read."
}

// mostPlanned bounds the ops of a function that is planned unasked.
const mostPlanned = 1000

// costReport is the JSON.
type costReport struct {
	cost.Report
	NotCounted []lint.Foreign `json:"not_counted,omitempty"` // ops of other dialects
}

// order is that of --sort and --top.
func (c costCmd) order() (cost.Order, error) {
	if c.Top < 0 {
		return cost.Order{}, &failure{"DM612", fmt.Sprintf("--top %d", c.Top), "is not a number of ops", "write --top 10"}
	}
	o := cost.Order{By: c.Sort, Top: c.Top}
	if o.Top > 0 && o.By == "" {
		o.By = "time"
	}
	return o, nil
}

// Run prints the cost of every function of the file.
func (c costCmd) Run(a *app) error {
	order, err := c.order()
	if err != nil {
		return err
	}
	p, err := c.analysed(a)
	if err != nil {
		return err
	}
	if err := c.divide(a, p); err != nil {
		return err
	}
	funcs, err := c.funcs(p)
	if err != nil {
		return err
	}
	if c.Planned {
		if funcs, err = planAll(a, p, funcs, c.Func != ""); err != nil {
			return err
		}
	}
	switch {
	case c.By != "":
		return c.attribute(a, p, funcs)
	case c.OutputFormat == "html":
		return &failure{"DM612", "--output-format html", "is a page by line", "add --by line, or make a page with dmir report"}
	}
	compiled := func(f *cost.Func) (cost.Figures, error) { return compiledFigures(a.ctx, p, f) }
	_, err = await(a.ctx, func() (any, error) {
		if c.OutputFormat == "json" {
			r := cost.JSON(p.Target, funcs)
			r.Sort(order)
			r.Compile(funcs, compiled)
			return nil, writeJSON(a.stdout, costReport{r, lint.ForeignOps(p)})
		}
		return nil, cost.Table(untilDone{a.ctx, a.stdout}, p.Target, funcs, cost.TableOptions{
			Color: styleOf(a.stdout).Color, Width: a.width(), Order: order, Compiled: compiled,
		})
	})
	if err != nil {
		return err
	}
	d, ok := lint.Uncounted(p)
	if !ok {
		return nil
	}
	if c.Strict {
		d.Severity = diag.Error
	}
	diag.Text(a.stderr, p.Src, d, styleOf(a.stderr))
	if c.Strict {
		return exitStatus(exitFindings)
	}
	return nil
}

// analysed is the program, with the sizes of the matrices that are given.
func (c *costCmd) analysed(a *app) (*program.Program, error) {
	src, opts, err := c.program(a, c.File)
	if err != nil {
		return nil, err
	}
	p, err := c.checked(a, src, opts)
	if err != nil {
		return nil, err
	}
	if err := c.bound(p); err != nil || len(c.Input) == 0 {
		return p, err
	}
	p, _, err = a.counted(src, opts, p, c.Func, c.Input)
	return p, err
}

// funcs are the functions that are asked for.
func (c costCmd) funcs(p *program.Program) ([]*cost.Func, error) {
	if c.Func != "" {
		i := slices.IndexFunc(p.Funcs, func(f *cost.Func) bool { return f.Func.Name == strings.TrimPrefix(c.Func, "@") })
		if i < 0 {
			_, _, err := driver.Pick(p, c.Func)
			return nil, noFunction(p, err, "--func")
		}
		return p.Funcs[i : i+1], nil
	}
	if len(p.Funcs) == 0 && !p.HasErrors() {
		return nil, noFunction(p, errors.New("the file has no function"), "")
	}
	return p.Funcs, nil
}

// planAll are the costs of functions as they are compiled; private ones are part of those that call them
// unless one is named.
func planAll(a *app, p *program.Program, funcs []*cost.Func, named bool) ([]*cost.Func, error) {
	var out []*cost.Func
	for _, f := range funcs {
		if f.Func.Private && !named {
			continue
		}
		g, err := await(a.ctx, func() (*cost.Func, error) { return planned.Cost(a.ctx, p, f.Func, p.Target) })
		var e *pass.Error
		switch {
		case errors.As(err, &e):
			diag.Text(a.stderr, p.Src, e.Diagnostic(), styleOf(a.stderr))
			return nil, exitStatus(exitFailed)
		case err != nil && a.ctx.Err() != nil:
			return nil, err
		case err != nil:
			help := "leave out --planned, which gives the figures as written"
			if len(f.Unbound()) > 0 {
				help = bindOpen(f)
			}
			return nil, &failure{"DM503", "--planned", fmt.Sprintf("@%s cannot be planned: %v", f.Func.Name, err), help}
		}
		out = append(out, g)
	}
	return out, nil
}

// compiledFigures are those of f as it is compiled, unless it is large when its calls and gradients are written out.
func compiledFigures(ctx context.Context, p *program.Program, f *cost.Func) (cost.Figures, error) {
	ops := 0
	for _, m := range p.Modules {
		if m.Func(f.Func.Name) == f.Func {
			ops = budget.SizesOf(m).Of(f.Func)
		}
	}
	if ops > mostPlanned {
		return cost.Figures{}, fmt.Errorf("it has %d ops; --planned plans it", ops)
	}
	return planned.Figures(ctx, p, f.Func, p.Target)
}

// untilDone is a writer that fails once its context is done.
type untilDone struct {
	ctx context.Context
	to  io.Writer
}

func (w untilDone) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.to.Write(b)
}
