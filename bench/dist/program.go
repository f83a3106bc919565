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
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// divided is a program in its forms.
type divided struct {
	name  string
	mesh  *mesh.Mesh
	whole *pass.Unit // of whole tensors, with shardings; nil of a program that is what one device runs
	local *ir.Module // what one device runs
	fn    *ir.Func   // its function
	text  string     // of local

	// In StableHLO: the program as JAX has printed it, whole, and local; "" of those that there are not.
	given, export, device string
	unsupported           string // why there is no device
}

// load reads a program, whose function is the one that is not private, and divides it.
func load(ctx context.Context, path string) (*divided, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	d := &divided{name: strings.TrimSuffix(name, filepath.Ext(name))}
	p := program.Load(source.New(name, string(text)), program.Options{})
	for _, e := range p.Diags {
		if e.Severity == diag.Error {
			return nil, fmt.Errorf("%s: %s", name, e.Message)
		}
	}
	u := &pass.Unit{Ctx: ctx, Module: p.Modules[0], Machine: p.Target}
	for _, f := range u.Module.Funcs {
		if !f.Private && f.Body != nil {
			u.Func = f
		}
	}
	if u.Func == nil {
		return nil, fmt.Errorf("%s has no function", name)
	}
	if p.Imported {
		d.given = string(text)
	}
	if err := pass.Run(u, pipeline.Export(), nil); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d.fn = u.Func
	if !op.PerDevice(u.Func.Op) {
		d.whole = u
		fn, problem := partition.Func(u.Context(), u.Module, u.Func)
		switch {
		case problem != nil:
			return nil, fmt.Errorf("%s: %s", name, problem.Msg)
		case fn == nil:
			return nil, fmt.Errorf("%s divides nothing", name)
		}
		d.fn = fn
		if d.export, err = exported(only(u.Module, u.Func)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	d.mesh = mesh.Find(u.Module, d.fn.Op.Str(op.MeshAttr))
	d.local = only(u.Module, d.fn)
	if d.text, err = print.Source(d.local); err != nil {
		return nil, err
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
	d.count(d.fn.Body, 1, sum)
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
		if trips, ok := op.Trips(o); ok {
			if n, known := trips.Int(); known {
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

// outcome is what a program computes.
type outcome struct {
	args  []*tensor.Tensor
	types []types.Type     // of the results
	one   []*tensor.Tensor // on one device; nil of a program that is what one device runs
	all   []*tensor.Tensor // divided
}

// run runs the program on the reference executor.
func (d *divided) run(ctx context.Context) (*outcome, error) {
	p, err := distribute.Of(d.local, d.fn)
	if err != nil {
		return nil, err
	}
	f := &ir.Func{Name: d.fn.Name, Op: d.fn.Op, Body: d.fn.Body}
	for i := range d.fn.Args {
		f.Args = append(f.Args, &ir.Value{Name: d.fn.Args[i].Name, Type: p.Args[i]})
	}
	r := &outcome{}
	for i := range d.fn.Results {
		r.types = append(r.types, p.Results[i])
	}
	if d.whole != nil {
		f = d.whole.Func // whose ops tell which numbers arguments may have
	}
	if r.args, err = interp.Inputs(ctx, f, nil, 7, nil); err != nil {
		return nil, err
	}
	if d.whole != nil {
		want, err := interp.Run(ctx, d.whole.Module, d.whole.Func, r.args, interp.Options{})
		if err != nil {
			return nil, err
		}
		r.one = want.Outputs
	}
	if r.all, _, err = p.Run(ctx, r.args, interp.Options{}); err != nil {
		return nil, err
	}
	return r, nil
}
