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
	// The largest differences of results, as parts of the largest element, from those on one device.
	Differences map[string]float64 `json:"differences"`
	NoDevice    string             `json:"not_exported,omitempty"` // why what one device runs is not exported
}

// files are the programs in a folder.
func files(dir string) []string {
	all, _ := filepath.Glob(filepath.Join(dir, "*.dmir"))
	imported, _ := filepath.Glob(filepath.Join(dir, "*.mlir"))
	return append(all, imported...)
}

// tolerance is how far results may be apart; sums are taken in another order.
const tolerance = 1e-5

// measure runs a program in all ways, compares the results, and counts what is sent.
func measure(ctx context.Context, j *jax, d *divided) (*row, error) {
	o, err := d.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	n := float64(d.mesh.Devices())
	r := &row{
		Program: d.name, Devices: d.mesh.Devices(), NoDevice: d.unsupported,
		ByAxis: map[string]float64{}, ByKind: map[string]float64{}, Differences: map[string]float64{},
	}
	for axes, bytes := range d.sent() {
		r.ByAxis[axes] = float64(bytes) / n
		r.Ours += float64(bytes) / n
	}
	want := o.one
	if want == nil {
		want = o.all
	} else {
		r.Differences["divided"] = apart(o.all, want)
	}
	var hlo string // of the program as it is written
	for _, form := range []struct{ what, text string }{{"device_on_jax", d.device}, {"whole_on_jax", d.export}, {"given_on_jax", d.given}} {
		if form.text == "" {
			continue
		}
		got, made, err := j.run(d.name+"."+form.what, form.text, o.args, o.types)
		if err != nil {
			return nil, err
		}
		r.Differences[form.what], hlo = apart(got, want), made
	}
	for what, x := range r.Differences {
		if !(x <= tolerance) {
			return nil, fmt.Errorf("%s: results differ by %g: %s", d.name, x, what)
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
