package export

import (
	"context"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
)

// predict is what a step takes: by the plan, else by the text, which has stages only as it is compiled. The error is that of ctx.
func (r *reader) predict(ctx context.Context) error {
	x := &r.p.Predicted
	x.Sent = -1
	figures, _ := r.Program.Figures(ctx, r.cost, r.Options.Machine, r.p.Pipeline == "" || r.Plan != nil)
	if err := ctx.Err(); err != nil {
		return err
	}
	if figures.Time.Known {
		x.Seconds = figures.Time.Ns / 1e9
	}
	for _, peak := range figures.Peaks {
		if n, ok := peak.Int(); ok {
			x.Memory = max(x.Memory, n)
		}
	}
	if figures.Sent != nil {
		x.Sent = *figures.Sent
	}
	if d, _ := r.cost.Divide(); d != nil && d.Mesh != nil {
		x.Collectives = r.collectives(d.Fn)
	}
	if r.Plan == nil {
		return nil
	}
	x.Seconds, x.Memory, x.Sent = r.Plan.Time, r.Plan.Memory.Total, 0
	for _, n := range r.Plan.Sent {
		x.Sent += n
	}
	return nil
}

// collectives are those that a device runs in a step, of one kind and along the same axes together; those that send most first.
func (r *reader) collectives(fn *ir.Func) []Collective {
	type key struct{ kind, axes string }
	sum := map[key]*Collective{}
	var visit func(b *ir.Block, times int64)
	visit = func(b *ir.Block, times int64) {
		for _, o := range b.Ops {
			if t, ok := shard.TransferOf(o, r.on); ok {
				kind := strings.ReplaceAll(strings.TrimPrefix(o.Name, "dm."), "_", "-")
				k := key{kind, t.Key()}
				if sum[k] == nil {
					sum[k] = &Collective{Kind: kind, Axes: r.named(r.grid.Layout(&types.Sharding{Partial: t.Axes}, 0).Partial)}
				}
				sum[k].Count += times
				sum[k].Bytes += times * t.Sent
			}
			each := times
			if trips, ok := op.Trips(o); ok {
				if n, known := trips.Int(); known {
					each *= n
				}
			}
			for _, region := range o.Regions {
				for _, inner := range region.Blocks {
					visit(inner, each)
				}
			}
		}
	}
	visit(fn.Body, 1)
	out := make([]Collective, 0, len(sum))
	for _, c := range sum {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Collective) int {
		if a.Bytes != b.Bytes {
			return int(min(max(b.Bytes-a.Bytes, -1), 1))
		}
		return strings.Compare(a.Kind+strings.Join(a.Axes, ","), b.Kind+strings.Join(b.Axes, ","))
	})
	return out
}
