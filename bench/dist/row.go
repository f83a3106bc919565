package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"dmir/compile/tensor"
)

// row is a line of the table: bytes that a device sends, on average.
type row struct {
	Program string             `json:"program"`
	Devices int                `json:"devices"`
	Ours    float64            `json:"sent_bytes"`
	ByAxis  map[string]float64 `json:"sent_bytes_by_axis"`
	XLA     float64            `json:"xla_sent_bytes"`
	ByKind  map[string]float64 `json:"xla_sent_bytes_by_kind"`
	// The largest differences from the results on one device, as parts of the largest element.
	Divided  float64 `json:"difference"`          // divided, on the reference executor
	JAX      float64 `json:"jax_difference"`      // the whole program on JAX's devices
	Manual   float64 `json:"manual_difference"`   // what one device runs, on JAX's devices
	NoManual string  `json:"no_manual,omitempty"` // why not
}

// names are the programs in a folder.
func names(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.dmir"))
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".dmir")
	}
	return files
}

// tolerance is how far results may be apart; sums are taken in another order.
const tolerance = 1e-5

// measure runs a program in all ways, compares the results, and counts what is sent.
func measure(ctx context.Context, j *jax, d *divided) (*row, error) {
	args, one, all, err := d.results(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	n := float64(d.mesh.Devices())
	r := &row{Program: d.name, Devices: d.mesh.Devices(), ByAxis: map[string]float64{}, ByKind: map[string]float64{}, NoManual: d.unsupported}
	for axes, bytes := range d.sent() {
		r.ByAxis[axes] = float64(bytes) / n
		r.Ours += float64(bytes) / n
	}
	results := d.whole.Func.Results
	whole, hlo, err := j.run(d.name, d.export, args, results)
	if err != nil {
		return nil, err
	}
	r.Divided, r.JAX = apart(all, one), apart(whole, one)
	if d.device != "" {
		manual, _, err := j.run(d.name+".device", d.device, args, results)
		if err != nil {
			return nil, err
		}
		r.Manual = apart(manual, one)
	}
	for what, x := range map[string]float64{"divided": r.Divided, "on JAX": r.JAX, "divided, on JAX": r.Manual} {
		if !(x <= tolerance) {
			return nil, fmt.Errorf("%s: results %s differ by %g", d.name, what, x)
		}
	}
	cs, err := collectives(hlo, d.mesh.Devices())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	for _, c := range cs {
		bytes := float64(c.sent(d.mesh.Devices())) / n
		r.ByKind[c.kind] += bytes
		r.XLA += bytes
	}
	return r, nil
}

// apart is the largest difference between results, as a part of the largest element of each: some
// elements are differences of large sums.
func apart(got, want []*tensor.Tensor) float64 {
	worst := 0.0
	for i, w := range want {
		if !slices.Equal(got[i].Shape, w.Shape) {
			return math.Inf(1)
		}
		largest, off := 0.0, 0.0
		for k := range w.Len() {
			largest = max(largest, math.Abs(w.Float(k)))
			if d := math.Abs(got[i].Float(k) - w.Float(k)); !(d <= off) {
				off = d
			}
		}
		if off > 0 && largest > 0 {
			off /= largest
		}
		if !(off <= worst) {
			worst = off
		}
	}
	return worst
}

// more reports whether dmir sends more than XLA.
func (r *row) more() bool { return r.Ours > r.XLA }

// list is a map as text, in the order of its keys.
func list(m map[string]float64, unit func(float64) string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if m[k] > 0 {
			out = append(out, k+" "+unit(m[k]))
		}
	}
	return strings.Join(out, ", ")
}
