package driver

import (
	"context"
	"fmt"

	"dmir/compile/interp"
	"dmir/compile/target"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
)

// Tuned is the result of measuring one product.
type Tuned struct {
	Product string // its sizes and element types, with the architecture
	// Model is the first tile of the model, Best the fastest one, with their
	// times.
	Model, Best     string
	ModelNs, BestNs float64
}

// tuneRanks is the number of candidates measured for each contraction.
const tuneRanks = 6

// TuneDevice returns the device of this machine that Tune measures code for arch
// on: the first of the target's that does not only check programs.
func TuneDevice(arch string) (device.Device, error) {
	to := target.For(arch)
	for _, k := range to.Devices() {
		if !k.Checks {
			d, _, err := device.Find(k.Name)
			return d, err
		}
	}
	return nil, fmt.Errorf("target %s has no device that measures times", to.Name())
}

// Tune measures the first candidates for the tile of every contraction of the
// job's function on d, all contractions at a time, and stores the fastest in
// file, where later builds for d's architecture find them; "" is the user's.
// progress is called with the rounds done; it may be nil.
func Tune(ctx context.Context, d device.Device, j Job, file string, progress func(done, total int)) ([]Tuned, error) {
	to := target.For(d.Arch())
	if file == "" {
		var err error
		if file, err = to.TilesFile(); err != nil {
			return nil, err
		}
	}
	args, err := interp.Inputs(ctx, j.Fn, j.Program.Bind, j.Seed, j.Inputs)
	if err != nil {
		return nil, err
	}
	j = j.targeted()
	found := map[string]*Tuned{}
	var order []*Tuned
	for rank := 1; rank <= tuneRanks; rank++ {
		if progress != nil {
			progress(rank-1, tuneRanks)
		}
		p, err := Build(ctx, j.Module, j.Fn, BuildOptions{Machine: j.Machine, Arch: d.Arch(), Bind: j.Program.Bind, TileRank: rank})
		if err != nil {
			return nil, err
		}
		res, err := RunArtifact(ctx, d, p, args, device.Options{Runs: 20})
		if err != nil {
			return nil, err
		}
		for _, s := range products(p, res.Kernels) {
			if s.ns <= 0 {
				return nil, fmt.Errorf("%s does not measure", d.Title())
			}
			t := found[s.product]
			if t == nil {
				t = &Tuned{Product: s.product, Model: s.tile, Best: s.tile, ModelNs: s.ns, BestNs: s.ns}
				found[s.product] = t
				order = append(order, t)
			}
			if s.ns < t.BestNs {
				t.Best, t.BestNs = s.tile, s.ns
			}
		}
	}
	tuned, fastest := make([]Tuned, len(order)), map[string]string{}
	for i, t := range order {
		tuned[i] = *t
		fastest[t.Product] = t.Best
	}
	return tuned, to.KeepTiles(file, fastest)
}

// productTime is the time of one contraction, including the steps that finish
// it.
type productTime struct {
	product, tile string
	ns            float64
}

func products(p *artifact.Program, kernels []Kernel) []productTime {
	var out []productTime
	in := false
	for i, s := range p.Steps {
		switch {
		case s.Product != "":
			out = append(out, productTime{s.Product, s.Tile, 0})
			in = true
		case s.FLOP+s.ReadBytes+s.WrittenBytes > 0: // another step of the schedule
			in = false
		}
		if in && kernels[i].Runs > 0 {
			out[len(out)-1].ns += kernels[i].MeasuredNs / float64(kernels[i].Runs)
		}
	}
	return out
}
