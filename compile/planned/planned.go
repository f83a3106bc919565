// Package planned gives what functions cost as they are compiled: after the passes up to the plan of
// memory, before code is generated. What was planned once is kept.
package planned

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/compile/target"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/print"
)

// Cost is the cost of fn, a function of p, as it is compiled for on. Of a function that is divided over
// a mesh it is that of each device. A function of which sizes are open cannot be planned, nor
// one in stages, whose devices run different programs.
func Cost(ctx context.Context, p *program.Program, fn *ir.Func, on *machine.Machine) (*cost.Func, error) {
	return For(ctx, p, fn, on, arch(on))
}

// For is Cost of fn as it is compiled for an architecture.
func For(ctx context.Context, p *program.Program, fn *ir.Func, on *machine.Machine, arch string) (*cost.Func, error) {
	fs, err := each(ctx, p, fn, on, arch)
	switch {
	case err != nil:
		return nil, err
	case len(fs) > 1:
		return nil, errors.New("it is in stages, of which each has a plan of its own")
	}
	return fs[0], nil
}

// each is the cost of what devices run: of fn, or of its stages.
func each(ctx context.Context, p *program.Program, fn *ir.Func, on *machine.Machine, arch string) ([]*cost.Func, error) {
	f := p.Cost(fn)
	if f == nil {
		return nil, errors.New("its cost is not known")
	}
	if open := f.Unbound(); len(open) > 0 {
		return nil, fmt.Errorf("it depends on %s", strings.Join(open[:min(len(open), 8)], ", "))
	}
	o := pass.Options{Bind: p.Bind}
	if f.Mesh() != nil {
		o.Devices = pass.AllDevices
	}
	u, err := plan(ctx, moduleOf(p, fn), fn, on, arch, o, true)
	var e *pass.Error
	if errors.As(err, &e) && e.Code == "DM841" { // more than dm.max_peak, which is for others to judge
		u, err = plan(ctx, moduleOf(p, fn), fn, on, arch, o, false)
	}
	if err != nil {
		return nil, err
	}
	var out []*cost.Func
	for _, own := range u.Functions() {
		out = append(out, cost.Function(own, u.Module, nil))
	}
	return out, nil
}

// plan is fn, a function of m, after the passes, within its budget of memory or without one.
func plan(ctx context.Context, m *ir.Module, fn *ir.Func, on *machine.Machine, arch string, o pass.Options, limited bool) (*pass.Unit, error) {
	m = m.CloneOf(pass.Reached(m, fn))
	of := target.For(arch)
	u := &pass.Unit{Ctx: ctx, Module: m, Func: m.Func(fn.Name), Machine: target.Machine(of, on), Options: o}
	if !limited {
		u.Func.Op.RemoveAttr(cost.MaxPeak)
	}
	return u, pass.Run(u, pipeline.For(of.Generator(target.Options{Arch: arch})), nil)
}

// arch is the architecture that programs for m are compiled for.
func arch(m *machine.Machine) string {
	if m.CPU {
		for _, t := range target.All() {
			if _, hosted := t.(target.Hosted); hosted {
				return t.DefaultArch()
			}
		}
	}
	return m.Arch
}

func moduleOf(p *program.Program, fn *ir.Func) *ir.Module {
	for _, m := range p.Modules {
		if m.Func(fn.Name) == fn {
			return m
		}
	}
	return nil
}

// searches counts how often a plan was searched for.
var searches atomic.Int64

// kept are figures by what they are of, the newest at the end.
var kept struct {
	mu   sync.Mutex
	list []known
}

type known struct {
	key [sha256.Size]byte
	of  cost.Figures
	err error
}

// mostKept bounds them.
const mostKept = 64

// Figures are those of Cost, and of a step in stages those of all together. They are found once for the same text of fn and of what it calls,
// and what takes long once for this user.
func Figures(ctx context.Context, p *program.Program, fn *ir.Func, on *machine.Machine) (cost.Figures, error) {
	key, err := keyOf(p, fn, on)
	if err != nil {
		return cost.Figures{}, err
	}
	kept.mu.Lock()
	if i := slices.IndexFunc(kept.list, func(k known) bool { return k.key == key }); i >= 0 {
		defer kept.mu.Unlock()
		return kept.list[i].of, kept.list[i].err
	}
	kept.mu.Unlock()
	k, file := known{key: key}, fileOf(key)
	if f, ok := read(file); ok {
		k.of = f
		remember(k)
		return f, nil
	}
	searches.Add(1)
	begin := time.Now()
	fs, err := each(ctx, p, fn, on, arch(on))
	if ctx.Err() != nil {
		return cost.Figures{}, context.Cause(ctx)
	}
	switch k.err = err; {
	case err != nil:
	case len(fs) > 1:
		k.of = cost.InStages(fs, on)
	default:
		k.of = fs[0].Figures(on)
		if fs[0].Mesh() == nil && fn.Body != nil {
			k.of.Shares = fs[0].Shares(on, fn)
		}
	}
	remember(k)
	if k.err == nil && time.Since(begin) >= keptFrom {
		keep(file, k.of)
	}
	return k.of, k.err
}

// remember keeps figures for this process.
func remember(k known) {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if kept.list = append(kept.list, k); len(kept.list) > mostKept {
		kept.list = slices.Delete(kept.list, 0, 1)
	}
}

func keyOf(p *program.Program, fn *ir.Func, on *machine.Machine) (key [sha256.Size]byte, err error) {
	m := moduleOf(p, fn)
	if m == nil {
		return key, errors.New("its cost is not known")
	}
	part := &ir.Module{Src: m.Src, Aliases: m.Aliases}
	for _, o := range m.Ops {
		if o.Name == op.Mesh {
			part.Ops = append(part.Ops, o)
		}
	}
	for _, f := range pass.Reached(m, fn) {
		part.Ops = append(part.Ops, f.Op)
	}
	text, err := print.Source(part)
	if err != nil {
		return key, err
	}
	asked, err := json.Marshal(struct {
		Text, Func string
		Machine    *machine.Machine
		Bind       map[string]int64
	}{text, fn.Name, on, p.Bind})
	return sha256.Sum256(asked), err
}
