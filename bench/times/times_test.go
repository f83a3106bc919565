package main

import (
	"math"
	"os"
	"strings"
	"testing"

	"dmir/bench/record"
)

// The page has the tables of the figures and the model as they are, and the errors of what was held out stay what it says
// of them: median within 15 %, three of four within 30 %.
func TestPage(t *testing.T) {
	f, all, left, err := predictAll("published")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/TIMES.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := record.Section(string(page), begin, end, tables(f, all, left))
	if err != nil || want != string(page) {
		t.Errorf("docs/TIMES.md is not current; go run ./bench/times -update docs/TIMES.md (%v)", err)
	}
	_, held := halves(all)
	if median, within := errorsOf(held); len(held) < 300 || median > 0.15 || within < 0.75 {
		t.Errorf("%s", summary(held))
	}
	sources := map[string]bool{}
	for _, p := range all {
		sources[p.row.Source] = true
		if !(p.predicted > 0) || math.IsInf(p.predicted, 0) {
			t.Errorf("%s is predicted to take %v s", p.row.name(), p.predicted)
		}
	}
	if len(sources) < 12 {
		t.Errorf("figures of %d sources", len(sources))
	}
}

// A row is known by all that it is a figure of, so that its half does not depend on its place or its value.
func TestRows(t *testing.T) {
	a := &row{Source: "s", Machine: "h100", Kind: "gemm", Params: map[string]any{"m": int64(1), "n": int64(2), "k": int64(3), "type": "f16"}, Value: 1, Unit: "us"}
	b := *a
	b.Value, b.Note = 2, "another"
	if a.name() != b.name() || a.held() != b.held() || a.name() != "s h100 gemm k=3 m=1 n=2 type=f16" {
		t.Errorf("%s, %s", a.name(), b.name())
	}
	b.Unit = "furlongs"
	if _, err := predict(&b); err == nil || !strings.Contains(err.Error(), "no prediction in furlongs") {
		t.Errorf("an unknown unit: %v", err)
	}
	b.Kind, b.Unit, b.Params = "knitting", "us", map[string]any{"columns": int64(1)}
	if _, err := predict(&b); err == nil || !strings.Contains(err.Error(), "no prediction for kind knitting") {
		t.Errorf("an unknown kind: %v", err)
	}
	for _, kind := range []string{"add", "copy", "scale", "triad", "fill", "read", "dot", "gelu", "softmax", "layer_norm", "rms_norm", "add_rms_norm", "relu_squared", "swiglu", "geglu", "transpose", "reduce", "cross_entropy"} {
		c := &row{Machine: "h100", Kind: kind, Params: map[string]any{"rows": int64(64), "columns": int64(128), "type": "f32"}, Value: 1, Unit: "us"}
		if _, err := predict(c); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
