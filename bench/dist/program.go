package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dmir/analysis/program"
	"dmir/compile/distribute"
	"dmir/compile/interp"
	"dmir/compile/pass"
	"dmir/compile/pipeline"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/partition"
	"dmir/dialect/print"
	"dmir/dialect/stablehlo"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// divided is a program in its three forms.
type divided struct {
	name   string
	mesh   *mesh.Mesh
	whole  *pass.Unit // values are whole tensors, with shardings
	local  *ir.Module // @step is what one device runs
	text   string     // of local
	export string     // whole in StableHLO
	device string     // local in StableHLO; "" where unsupported says why it has none

	unsupported string
}

// load reads testdata/NAME.dmir, whose function is @step, and divides it.
func load(ctx context.Context, dir, name string) (*divided, error) {
	text, err := os.ReadFile(filepath.Join(dir, name+".dmir"))
	if err != nil {
		return nil, err
	}
	p := program.Load(source.New(name+".dmir", string(text)), program.Options{})
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			return nil, fmt.Errorf("%s: %s", name, d.Message)
		}
	}
	u := &pass.Unit{Ctx: ctx, Module: p.Modules[0], Func: p.Modules[0].Func("step"), Machine: p.Target}
	if u.Func == nil {
		return nil, fmt.Errorf("%s has no @step", name)
	}
	if err := pass.Run(u, pipeline.Export(), nil); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d := &divided{name: name, whole: u}
	fn, problem := partition.Func(u.Module, u.Func)
	switch {
	case problem != nil:
		return nil, fmt.Errorf("%s: %s", name, problem.Msg)
	case fn == nil:
		return nil, fmt.Errorf("%s divides nothing", name)
	}
	d.mesh = mesh.Find(u.Module, fn.Op.Str(op.MeshAttr))
	d.local = only(u.Module, fn)
	if d.text, err = print.Source(d.local); err != nil {
		return nil, err
	}
	if d.export, err = exported(only(u.Module, u.Func)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if d.device, err = exported(d.local); err != nil {
		d.unsupported = err.Error()
	}
	return d, nil
}

// only is a module with the meshes of m and the function f.
func only(m *ir.Module, f *ir.Func) *ir.Module {
	out := &ir.Module{Src: m.Src, Aliases: m.Aliases}
	for _, o := range m.Ops {
		if o.Name == op.Mesh {
			out.Ops = append(out.Ops, o)
		}
	}
	out.Ops = append(out.Ops, f.Op)
	out.AddFunc(f)
	return out
}

func exported(m *ir.Module) (string, error) {
	out, d := stablehlo.Export(m)
	if d != nil {
		return "", fmt.Errorf("%s", d.Message)
	}
	return print.Generic(out)
}

// kinds are the collectives by the names that XLA has for them.
var kinds = map[string]string{
	op.AllReduce: "all-reduce", op.AllGather: "all-gather", op.ReduceScatter: "reduce-scatter",
	op.AllToAll: "all-to-all", op.CollectivePermute: "collective-permute",
}

// sent is the bytes that all devices send together, by the axes along which they do.
func (d *divided) sent() map[string]int64 {
	sum := map[string]int64{}
	d.count(d.local.Func("step").Body, 1, sum)
	return sum
}

func (d *divided) count(b *ir.Block, times int64, sum map[string]int64) {
	for _, o := range b.Ops {
		if kind := kinds[o.Name]; kind != "" {
			axes, err := d.mesh.ParseAxes(op.Strings(o, "axes"))
			n, ok := o.In(0).Bytes().Int()
			if err != nil || !ok {
				continue
			}
			c := collective{kind: kind, bytes: n, group: d.mesh.Count(axes), times: times}
			for _, p := range op.Pairs(o, "pairs") {
				if p[0] != p[1] {
					c.pairs += d.mesh.Devices() / c.group
				}
			}
			sum[strings.Join(op.Strings(o, "axes"), "·")] += c.sent(d.mesh.Devices())
		}
		each := times
		switch o.Name {
		case op.While:
			if n, ok := op.TripCount(o); ok {
				each *= n
			}
		case op.Scan:
			if x := o.Operands[op.Carries(o):]; len(x) > 0 {
				n, _ := x[0].Tensor().Shape[0].Int()
				each *= n
			}
		}
		for _, r := range o.Regions {
			for _, inner := range r.Blocks {
				d.count(inner, each, sum)
			}
		}
	}
}

// results are those of the program on one device and divided, for the same arguments.
func (d *divided) results(ctx context.Context) (args, one, all []*tensor.Tensor, err error) {
	if args, err = interp.Inputs(ctx, d.whole.Func, nil, 7, nil); err != nil {
		return nil, nil, nil, err
	}
	want, err := interp.Run(ctx, d.whole.Module, d.whole.Func, args, interp.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := distribute.Of(d.local, d.local.Func("step"))
	if err != nil {
		return nil, nil, nil, err
	}
	got, err := p.Run(ctx, args, interp.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	return args, want.Outputs, got.Outputs, nil
}
