package pass

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/stacks"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
)

// Stage is one pass that has run.
type Stage struct {
	Pass    Pass
	Elapsed time.Duration // of the pass, verification excluded
	Ops     int           // in the function behind it, those in regions included
}

// Run applies the passes to u.Func one after the other and checks the function
// after each. observe, if not nil, is called after each pass, when
// u.Func is its outcome. Errors that belong to a place in the program are
// *Error; the context's own error ends the run between two passes.
func Run(u *Unit, ps []Pass, observe func(Stage) error) error {
	// What other dialects write may look like ops with values that there are not.
	var e *Error
	if err := Check(u); errors.As(err, &e) {
		e.Code, e.Help = "DM804", diag.Find("DM804").Help
		return e
	}
	if len(ps) > 0 && !u.Options.Sparse { // passes see no tuples
		if u.Options.Devices != 0 {
			var problem *shard.Problem
			if u.Module, u.Func, problem = flatten.Divided(u.Module, u.Func, u.Options.Bind); problem != nil {
				return u.Refused("DM831", problem)
			}
		}
		u.Module, u.Func, _ = flatten.Fused(u.Module, u.Func)
		if u.Options.Devices != 0 && u.Func.Op.Attr(op.PipelineAttr) != nil {
			var problem *shard.Problem
			if u.Module, u.Func, problem = stacks.Stages(u.Module, u.Func); problem != nil {
				return u.Refused("DM835", problem)
			}
		}
	}
	for _, p := range ps {
		if err := context.Cause(u.Context()); err != nil {
			return err
		}
		u.Begin(p.Name)
		start := time.Now()
		if err := Each(u, func(u *Unit) error { return apply(u, p) }); err != nil {
			return err
		}
		s := Stage{Pass: p, Elapsed: time.Since(start)}
		if err := Each(u, Check); err != nil {
			return broken(p, err)
		}
		if observe == nil {
			continue
		}
		for _, f := range u.Functions() {
			ir.Walk(f.Body.Ops, func(*ir.Op) bool { s.Ops++; return true })
		}
		if err := observe(s); err != nil {
			return err
		}
	}
	return nil
}

// Each runs f on u or, if its function is split, on each part.
func Each(u *Unit, f func(*Unit) error) error {
	if u.Parts == nil {
		return f(u)
	}
	for i := range u.Parts {
		v := *u
		v.Func, v.Parts = u.Parts[i].Func, nil
		err := f(&v)
		u.Parts[i].Func, u.Module = v.Func, v.Module
		u.Warnings, u.Gaps = v.Warnings, v.Gaps
		if err != nil {
			return err
		}
	}
	return nil
}

// apply runs p.
func apply(u *Unit, p Pass) (err error) {
	defer Recover(&err, u.Func, "the pass "+p.Name)
	return p.Run(u)
}

// Recover, deferred, makes a panic of a part of the compiler its error. It is a
// fault of the compiler, which must not take an editor or a build with it.
func Recover(err *error, fn *ir.Func, part string) {
	if r := recover(); r != nil {
		*err = Errorf(fn.Op, "DM820", "%s failed: %v (%s)", part, r, origin(string(debug.Stack())))
	}
}

// origin is the line of the program that panicked, for reports.
func origin(stack string) string {
	_, after, _ := strings.Cut(stack, "panic(")
	for line := range strings.Lines(after) {
		line = strings.TrimSpace(line)
		if i := strings.LastIndex(line, ".go:"); i >= 0 && !strings.Contains(line, "/runtime/") {
			line, _, _ = strings.Cut(line[strings.LastIndexByte(line[:i], '/')+1:], " ")
			return line
		}
	}
	return "unknown place"
}

func broken(p Pass, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	e.Msg = fmt.Sprintf("after the pass %s: %s", p.Name, e.Msg)
	return e
}

// Check verifies the function of u: the rules of the dialect, that every
// operand is defined before it is used, and that the lists of uses are right.
func Check(u *Unit) error {
	ops := []*ir.Op{u.Func.Op}
	diags := append(verify.Ops(u.Module, ops), verify.Function(u.Module, u.Func.Op)...)
	for _, d := range diags {
		if d.Severity == diag.Error {
			e := Errorf(nil, "DM820", "%s (%s)", d.Message, d.Code)
			e.Span = d.Span
			return e
		}
	}
	c := &checker{uses: map[ir.Use]*ir.Value{}, seen: map[*ir.Value]bool{}}
	for _, r := range u.Func.Op.Regions {
		if o := c.region(u.Func.Op, r); o != nil {
			return Errorf(o, "DM820", "%s uses a value that is not defined before it", o.Name)
		}
	}
	for v := range c.seen {
		for _, use := range v.Uses {
			if c.uses[use] != v {
				return Errorf(use.Op, "DM820", "%s is wrongly listed among the users of %s", use.Op.Name, v.Name)
			}
			delete(c.uses, use)
		}
	}
	for use, v := range c.uses {
		return Errorf(use.Op, "DM820", "%s is missing among the users of %s", use.Op.Name, v.Name)
	}
	return nil
}

type checker struct {
	uses map[ir.Use]*ir.Value
	seen map[*ir.Value]bool
}

// region returns the first op with an operand that is not visible to it.
func (c *checker) region(owner *ir.Op, r *ir.Region) *ir.Op {
	if r.Op != owner {
		return owner
	}
	for _, b := range r.Blocks {
		for _, v := range b.Args {
			c.seen[v] = true
		}
		for _, o := range b.Ops {
			if o.Parent != b {
				return o
			}
			for i, v := range o.Operands {
				if !c.seen[v] {
					return o
				}
				c.uses[ir.Use{Op: o, Index: i}] = v
			}
			for _, inner := range o.Regions {
				if bad := c.region(o, inner); bad != nil {
					return bad
				}
			}
			for _, v := range o.Results {
				c.seen[v] = true
			}
		}
	}
	return nil
}
