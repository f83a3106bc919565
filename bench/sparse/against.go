package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"dmir/gpu/device"
)

// near is how far a predicted time may be from the one measured, as a part of it.
const near = 0.25

// against writes what the local machine's file predicts of the rows in a file of results beside what was measured then. Nothing runs.
func against(ctx context.Context, w io.Writer, d device.Device, file string, size int, wanted func(m *matrix, r *row) bool) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var then report
	if err := json.Unmarshal(data, &then); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	count, good := 0, 0
	var ratios []float64
	for _, m := range matrices(size) {
		for _, r := range rows(&m) {
			at := slices.IndexFunc(then.Rows, func(f figures) bool { return f.Matrix == m.name && f.Row == r.name && f.Predict > 0 })
			if at < 0 || !wanted(&m, &r) {
				continue
			}
			c, _, _, err := compiled(ctx, d, &m, &r)
			if err != nil {
				return fmt.Errorf("%s %s: %w", m.name, r.name, err)
			}
			ratio := c.predict / then.Rows[at].Ms
			ratios = append(ratios, ratio)
			mark := ""
			if count++; math.Abs(ratio-1) <= near {
				good++
			} else {
				mark = "  *"
			}
			fmt.Fprintf(w, "%-12s %-24s %9.3f ms, predicted %9.3f, %5.2f%s\n", m.name, r.name, then.Rows[at].Ms, c.predict, ratio, mark)
		}
	}
	if count == 0 {
		return fmt.Errorf("%s has no row with a predicted time", file)
	}
	slices.Sort(ratios)
	fmt.Fprintf(w, "%d of %d within %.0f %%; the median is %.2f of the time measured\n", good, count, 100*near, ratios[count/2])
	return nil
}
