package driver

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// moves are the bytes that steps of functions of testdata/counted are predicted
// to move, read and written: in place the part alone, elsewhere the copy.
var moves = map[string]string{
	"dus.dus":                 "y 4000008 4000000",
	"dus.dus_live":            "h_y 4004008 8000000",
	"kv_decode.kv":            "y 2097160 2097152",
	"scatter.f":               "y 2564224 2560000",
	"scatter_live.kv":         "y 8328 8192",
	"update_in_place.donated": "y0 28 28, y1 20 20, y2 16 16, y3 96 96, y4 504 504",
	"update_in_place.copied":  "",
	"update_in_place.dies":    "q 168 160",
	"update_in_place.lives":   "z_t_q 16520 16512",
	"scatter_in_place.apart":  "y0 120 96, y1 272 128, y2 224 96, y3 144 48, y4 4 2",
	"scatter_in_place.again":  "y0 200 160, y1 432 192, y2 224 96, y3 144 48",
	"scatter_in_place.live":   "y0 840 640, y1 880 640, y2 344 216",
	"scatter_groups.f":        "y_groups 1600 4004, y_pieces 31204 384, y 29988 38400",
	"scatter_groups.donated":  "y_groups 3200 4004, y_pieces 32804 384, y 58788 25600",
	"kv_loop.donated":         "after 4360 256, n_from_zero 8 8, t_from_ 256 256",
	"kv_loop.kept":            "after 4360 256, c_from_cache 16384 16384",
	"kv_loop.places":          "",
	"dus_inplace.dus":         "y 4000008 4000000",
	"dus_inplace.dus_live":    "h_y 4004008 8000000",
	"dus_donated.dus":         "y 4008 4000",
	"kv_decode_donated.kv":    "y 2056 2048",
	"scatter_donated.f":       "y 8320 4096",
	"scatter_live_donated.kv": "y 136 128",
	"parts.together":          "a0_t 14528 24576, b_kernel 11264 6144, c_p 26816 43424",
	"parts.qkv":               "qkv 9344 5120, qkv_2 9216 5120",
	"parts.cache":             "next 6664 768",
	"parts.rows":              "pq 5120 5120, pq_2 7680 7680",
	"parts.stacked":           "r_kernel 49152 1536, r_kernel_keys 101376 49152, r_kernel_queries 101376 24576",
}

// exact are functions that move exactly what is predicted with these data, though a
// step states that it depends on data.
var exact = map[string]bool{"scatter_in_place.apart": true, "kv_loop.donated": true, "kv_loop.kept": true, "update_in_place.donated": true}

// Updates compute what the reference does, in place and as copies, and move
// what the cost model predicts.
func TestUpdates(t *testing.T) {
	t.Parallel()
	needEmulator(t)
	for _, path := range files(t, "../../testdata/counted/*.dmir") {
		p := read(t, path)
		for _, m := range p.Modules {
			for _, fn := range m.Funcs {
				name := strings.TrimSuffix(filepath.Base(path), ".dmir") + "." + fn.Name
				want, known := moves[name]
				if !known && !updates(fn) {
					continue // package counted runs it
				}
				t.Run(name, func(t *testing.T) {
					built, got := agree(t, p, fn.Name)
					if err := built.Check(); err != nil {
						t.Error(err)
					}
					predicted := map[string]bool{}
					for i, k := range got.Kernels {
						s := &built.Steps[i]
						predicted[fmt.Sprintf("%s %d %d", s.Name, s.ReadBytes, s.WrittenBytes)] = true
						more := k.CountedReadBytes > k.ReadBytes || k.CountedWrittenBytes > k.WrittenBytes
						less := k.CountedReadBytes < k.ReadBytes || k.CountedWrittenBytes < k.WrittenBytes
						if more || less && (k.Differs == "" || exact[name]) {
							t.Errorf("%s (%s): %d bytes read and %d written in %d runs, the model predicts %d and %d", s.Name, k.Class, k.CountedReadBytes, k.CountedWrittenBytes, k.Runs, k.ReadBytes, k.WrittenBytes)
						}
					}
					if !known {
						t.Error("it is in no table")
					}
					for _, step := range strings.Split(want, ", ") {
						if step != "" && !predicted[step] {
							t.Errorf("no step is predicted as %q; there are %v", step, slices.Sorted(maps.Keys(predicted)))
						}
					}
				})
			}
		}
	}
}

// updates reports whether fn writes a part of a value.
func updates(fn *ir.Func) (found bool) {
	ir.Walk(fn.Body.Ops, func(o *ir.Op) bool {
		found = found || op.Updates(o)
		return true
	})
	return found
}
