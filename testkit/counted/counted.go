// Package counted compares, step by step, the bytes that the cost model predicts
// with those that the emulator counts, over every program of the suite. If
// they differ the step must record why (artifact.Step.Differs): the known terms are
// listed here, with the difference that each allows.
package counted

import (
	"context"
	"fmt"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/dialect/ir"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Row is one step of a program.
type Row struct {
	Program string `json:"program"`
	Step    string `json:"step"`
	Class   string `json:"class"`
	Runs    int64  `json:"runs"`
	// Bytes of all runs.
	PredictedRead    int64  `json:"predicted_read_bytes"`
	PredictedWritten int64  `json:"predicted_written_bytes"`
	CountedRead      int64  `json:"counted_read_bytes"`
	CountedWritten   int64  `json:"counted_written_bytes"`
	Term             string `json:"term,omitempty"` // why the counted bytes differ
}

// Predicted is all bytes that the cost model predicts for the step.
func (r *Row) Predicted() int64 { return r.PredictedRead + r.PredictedWritten }

// Counted is all bytes that the emulator counted.
func (r *Row) Counted() int64 { return r.CountedRead + r.CountedWritten }

// Equal reports whether both are the same, reads and writes each.
func (r *Row) Equal() bool {
	return r.PredictedRead == r.CountedRead && r.PredictedWritten == r.CountedWritten
}

// Term is a reason for counted bytes to differ from predicted ones.
type Term struct {
	Text string // as a step states it
	// AtMost is set if the prediction is a bound: what is moved depends on the
	// data, and is never more.
	AtMost bool
	Doc    string
}

// Problem is what is wrong with a row: bytes that differ without a known term,
// or more bytes than the term allows; "" where nothing is.
func (r *Row) Problem() string {
	where := fmt.Sprintf("%s: step %s (%s): predicted %d read and %d written, counted %d and %d in %d runs", r.Program, r.Step, r.Class,
		r.PredictedRead, r.PredictedWritten, r.CountedRead, r.CountedWritten, r.Runs)
	switch t := Find(r.Term); {
	case r.Term == "" && !r.Equal():
		return where + ", and no term explains it"
	case r.Term != "" && t == nil:
		return fmt.Sprintf("%s: %q is no known term", where, r.Term)
	case t != nil && t.AtMost && (r.CountedRead > r.PredictedRead || r.CountedWritten > r.PredictedWritten):
		return fmt.Sprintf("%s, more than %q allows", where, r.Term)
	}
	return ""
}

// Find is the known term that text is one of, nil where there is none.
func Find(text string) *Term {
	for i := range Terms {
		if Terms[i].Text == text {
			return &Terms[i]
		}
	}
	return nil
}

// Load reads the text of a program, with a size for every symbol that it leaves open.
func Load(p Program) (*program.Program, error) {
	target, _ := machine.Lookup(machine.Default)
	bind := map[string]int64{}
	for range 2 { // the first time to find the symbols
		loaded := program.Load(source.New(p.Name+".dmir", p.Text), program.Options{Target: target, Bind: bind, Arrays: p.Arrays})
		for _, d := range loaded.Diags {
			if d.Severity == diag.Error {
				return nil, fmt.Errorf("%s: %s %s", diag.Place(loaded.Src, d.Span), d.Code, d.Message)
			}
		}
		open := false
		for _, f := range loaded.Funcs {
			for _, s := range f.Unbound() {
				bind[s], open = openSize, true
			}
		}
		if !open {
			return loaded, nil
		}
	}
	return nil, fmt.Errorf("%s: sizes stay open", p.Name)
}

// openSize is what symbols of programs are bound to.
const openSize = 4

// Steps runs every public function of p on the emulator and returns what it counts.
func Steps(ctx context.Context, p Program) ([]Row, error) {
	loaded, err := Load(p)
	if err != nil {
		return nil, err
	}
	var out []Row
	for _, m := range loaded.Modules {
		for _, fn := range m.Funcs {
			if fn.Body == nil || fn.Private || len(fn.Results) == 0 {
				continue
			}
			rows, err := steps(ctx, loaded, m, fn)
			if err != nil {
				return nil, fmt.Errorf("%s: @%s: %w", p.Name, fn.Name, err)
			}
			for i := range rows {
				rows[i].Program = p.Name + " @" + fn.Name
			}
			out = append(out, rows...)
		}
	}
	return out, nil
}

func steps(ctx context.Context, p *program.Program, m *ir.Module, fn *ir.Func) ([]Row, error) {
	res, err := driver.Run(ctx, driver.Job{Program: p, Module: m, Fn: fn, Seed: 7, Device: "emulator"}, nil)
	if err != nil {
		return nil, err
	}
	var out []Row
	for _, k := range res.Kernels {
		if k.Decision || !k.Counted || k.Runs == 0 {
			continue
		}
		out = append(out, Row{
			Step: k.Name, Class: k.Class, Runs: k.Runs, Term: k.Differs,
			PredictedRead: k.ReadBytes, PredictedWritten: k.WrittenBytes, CountedRead: k.CountedReadBytes, CountedWritten: k.CountedWrittenBytes,
		})
	}
	return out, nil
}
