package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/analysis/report"
	"dmir/syntax/source"
	"dmir/testkit/randprog"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func load(name, text string) *program.Program {
	return program.Load(source.New(name, text), program.Options{})
}

// Each archive has a new.dmir, or an old.dmir and a new.dmir; beside them stands
// what the panels and the texts of the difference are.
func TestGolden(t *testing.T) {
	paths, _ := filepath.Glob("testdata/*.txtar")
	if len(paths) == 0 {
		t.Fatal("no golden files")
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			ar, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			in, want := map[string]string{}, map[string]string{}
			var inputs []txtar.File
			for _, f := range ar.Files {
				if strings.HasSuffix(f.Name, ".dmir") {
					in[f.Name], inputs = string(f.Data), append(inputs, f)
				} else {
					want[f.Name] = string(f.Data)
				}
			}
			got := outputs(t, in)
			if *update {
				ar.Files = append(inputs, got...)
				if err := os.WriteFile(path, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(got) != len(want) {
				t.Errorf("%d outputs, %d are written down; run with -update", len(got), len(want))
			}
			for _, f := range got {
				if d := cmp.Diff(want[f.Name], string(f.Data)); d != "" {
					t.Errorf("%s (-want +got):\n%s", f.Name, d)
				}
			}
		})
	}
}

func outputs(t *testing.T, in map[string]string) []txtar.File {
	t.Helper()
	p := load("new.dmir", in["new.dmir"])
	if p.HasErrors() {
		t.Fatal(p.Diags)
	}
	add := func(out []txtar.File, kind string, o report.Options) ([]txtar.File, report.Data) {
		d, err := report.Build(p, kind, "", o)
		if err != nil {
			t.Fatal(err)
		}
		d.Target.Peaks = nil // another file has them
		text, err := json.MarshalIndent(d, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return append(out, txtar.File{Name: kind + ".json", Data: append(text, '\n')}), d
	}
	var out []txtar.File
	if _, isDiff := in["old.dmir"]; !isDiff {
		for _, kind := range report.KindsOf(p, "") {
			out, _ = add(out, kind, report.Options{})
		}
		return out
	}
	old := load("old.dmir", in["old.dmir"])
	if old.HasErrors() {
		t.Fatal(old.Diags)
	}
	out, d := add(out, report.KindDiff, report.Options{Old: old, Gate: true, Tolerance: 0.05})
	var text, narrow, colour, md bytes.Buffer
	for _, err := range []error{
		d.Diff.Text(&text, report.TextOptions{}), d.Diff.Text(&narrow, report.TextOptions{Width: 60}),
		d.Diff.Text(&colour, report.TextOptions{Color: true}), d.Diff.Markdown(&md),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	escaped := strings.ReplaceAll(colour.String(), "\x1b", "ESC")
	return append(out, txtar.File{Name: "diff.txt", Data: text.Bytes()}, txtar.File{Name: "narrow.txt", Data: narrow.Bytes()},
		txtar.File{Name: "colour.txt", Data: []byte(escaped)}, txtar.File{Name: "diff.md", Data: md.Bytes()})
}

// What holds of the mesh and the timeline of programs that are divided at all: each device has elements of
// the tensor, all devices together have all of them, and what is exposed are times of communication.
func TestDevices(t *testing.T) {
	paths, _ := filepath.Glob("../../examples/*.dmir")
	divided := 0
	for _, path := range append(paths, "page/testdata/cube.dmir", "page/testdata/overlap.dmir", "page/testdata/unlinked.dmir") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p := load(path, string(text))
		for _, f := range p.Funcs {
			if f.Mesh() == nil {
				continue
			}
			divided++
			d, err := report.Build(p, report.KindMesh, f.Func.Name, report.Options{})
			if err != nil {
				t.Fatal(err)
			}
			pieces(t, path, d.Mesh)
			d, err = report.Build(p, report.KindTimeline, f.Func.Name, report.Options{})
			if err != nil {
				t.Fatal(err)
			}
			streams(t, path, d.Timeline)
		}
	}
	if divided < 5 {
		t.Errorf("%d functions are divided", divided)
	}
}

func pieces(t *testing.T, path string, m *report.Mesh) {
	t.Helper()
	for _, v := range m.Values {
		if v.Line == 0 || v.Piece == "" || v.Sharding == "" || v.Layout < 0 {
			t.Fatalf("%s: an odd value: %+v", path, v)
		}
		for _, d := range m.Layouts[v.Layout].Dims {
			if len(d.At) != m.Shown {
				t.Fatalf("%s: %s has pieces on %d devices", path, v.Name, len(d.At))
			}
			have := int64(0)
			for _, p := range d.Parts {
				have += p.End - p.Start
			}
			if m.Shown == m.Devices && have != d.Size {
				t.Fatalf("%s: the devices have %d of %d elements of %s", path, have, d.Size, v.Name)
			}
		}
	}
}

func streams(t *testing.T, path string, x *report.Timeline) {
	t.Helper()
	if x.Reason != "" {
		return
	}
	ends := map[string]int64{}
	var own int64
	for _, b := range x.Bars {
		if b.StartNs < ends[b.Stream] || b.EndNs > x.TimeNs || b.Line == 0 {
			t.Fatalf("%s: an odd bar: %+v", path, b)
		}
		ends[b.Stream] = b.EndNs
		own += b.ExposedNs
	}
	var alone int64
	for _, e := range x.Exposed {
		alone += e.EndNs - e.StartNs
	}
	// Each bar is rounded by itself.
	if slack := int64(len(x.Bars) + 1); max(alone-x.ExposedNs, x.ExposedNs-alone) > slack || max(own-x.ExposedNs, x.ExposedNs-own) > slack {
		t.Fatalf("%s: %d ns are exposed, %d of the bars, %d between kernels", path, x.ExposedNs, own, alone)
	}
	if max(x.TimeNs-x.ComputeNs-x.ExposedNs, x.ComputeNs+x.ExposedNs-x.TimeNs) > 2 {
		t.Fatalf("%s: %d ns are not %d of kernels and %d exposed", path, x.TimeNs, x.ComputeNs, x.ExposedNs)
	}
}

// What holds of the panels of any program.
func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(60) {
		p := load("in.dmir", randprog.Structure(seed, 10+2*int(seed), seed%3 == 2))
		for _, kind := range report.KindsOf(p, "f") {
			d, err := report.Build(p, kind, "f", report.Options{})
			if err != nil {
				t.Fatal(err)
			}
			text, err := report.JSON(d)
			if err != nil {
				t.Fatal(err)
			}
			var back report.Data
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(d, back); diff != "" {
				t.Fatalf("JSON loses something:\n%s", diff)
			}
			switch kind {
			case report.KindGraph:
				graph(t, d)
			case report.KindRoofline:
				roofline(t, d)
			case report.KindMemory:
				plan(t, d)
			}
		}
	}
}

// The lines and modules of a traced program add up to it, in every panel, and each that takes time has an item.
func TestGroups(t *testing.T) {
	const path = "../../testdata/traced/.dmir/traces/step.mlir"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := load(path, string(text))
	total := cost.JSON(p.Target, p.Funcs).Functions[0]
	for _, kind := range report.KindsOf(p, "") {
		d, err := report.Build(p, kind, "", report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		places := map[string][]report.Place{}
		switch kind {
		case report.KindGraph:
			for _, n := range d.Graph.Nodes {
				places[kind] = append(places[kind], n.Place)
			}
		case report.KindRoofline:
			for _, x := range append(d.Roofline.Dots, d.Roofline.Rest...) {
				places[kind] = append(places[kind], x.Place)
			}
		case report.KindMemory:
			for _, x := range d.Memory.Buffers {
				places[kind] = append(places[kind], x.Place)
			}
		}
		for name, groups := range map[string][]report.Group{"lines": d.Groups.Lines, "modules": d.Groups.Modules} {
			var ns, moved int64
			for i, g := range groups {
				ns, moved = ns+g.TimeNs, moved+g.Moved
				holds := func(p report.Place) bool {
					if name == "lines" {
						return slices.Contains(p.InLines, i)
					}
					return slices.Contains(p.InModules, i)
				}
				if !slices.ContainsFunc(places[kind], holds) {
					t.Errorf("%s: nothing is in %q", kind, g.Name)
				}
			}
			if ns != *total.TimeNs || moved != *total.Moved {
				t.Errorf("%s: %s take %d ns and move %d B, the function %d and %d", kind, name, ns, moved, *total.TimeNs, *total.Moved)
			}
		}
	}
	own, err := report.Build(load("in.dmir", randprog.Structure(1, 20, false)), report.KindGraph, "", report.Options{})
	if err != nil || own.Groups != nil {
		t.Errorf("a program that was not traced has groups: %v, %v", own.Groups, err)
	}
}

// The ops of a gradient stand at lines of the function that it differentiates, also where devices run them.
func TestLinesOfGradients(t *testing.T) {
	for _, name := range []string{"mlp_train", "llama_fsdp"} {
		path := "../../examples/" + name + ".dmir"
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p := load(path, string(text))
		d, err := report.Build(p, report.KindGraph, "", report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var differentiated int
		for _, f := range d.Functions {
			if f.Name != d.Function {
				differentiated = f.Line
			}
		}
		lines := map[int]bool{}
		for _, n := range d.Graph.Nodes {
			if n.Kind == "op" && n.Line > differentiated {
				lines[n.Line] = true
			}
		}
		if differentiated == 0 || len(lines) < 8 {
			t.Errorf("%s: ops stand at %d lines after line %d", name, len(lines), differentiated)
		}
	}
}

func graph(t *testing.T, d report.Data) {
	t.Helper()
	var moved, ns int64
	var share float64
	known := true
	for i, n := range d.Graph.Nodes {
		if n.ID != i || n.Parent >= i {
			t.Fatalf("node %d is %+v", i, n)
		}
		if n.Parent >= 0 {
			continue
		}
		if known = known && n.Moved != nil && n.TimeNs != nil; known {
			moved, ns = moved+*n.Moved, ns+*n.TimeNs
		}
		share += n.Share
	}
	if known && (moved != *d.Totals.Moved || math.Abs(share-1) > 1e-6) {
		t.Fatalf("the nodes move %d of %d bytes in %g of the time", moved, *d.Totals.Moved, share)
	}
	for _, n := range d.Graph.Nodes {
		if n.Kind != report.NodeResult && n.Line == 0 {
			t.Fatalf("no place: %+v", n)
		}
	}
}

func roofline(t *testing.T, d report.Data) {
	t.Helper()
	r := d.Roofline
	var share float64
	for _, x := range slices.Concat(r.Dots, r.Rest) {
		share += x.Share
	}
	if d.Totals.TimeNs != nil && math.Abs(share-1) > 1e-6 {
		t.Fatalf("the dots take %g of the time", share)
	}
	for _, x := range r.Dots {
		roof := r.Roofs[x.Roof]
		if top := min(roof.Rate, *x.Intensity*d.Target.Bandwidth); *x.Achieved > top*(1+1e-9) || x.RoofShare > 1+1e-9 {
			t.Fatalf("a dot above its roof: %+v", x)
		}
		if *x.Intensity < r.MinX || *x.Intensity > r.MaxX || *x.Achieved < r.MinY || *x.Achieved > r.MaxY {
			t.Fatalf("a dot beyond the axes: %+v", x)
		}
	}
	for _, x := range r.Rest {
		if x.Reason == "" {
			t.Fatalf("a dot without a place or a reason: %+v", x)
		}
	}
}

func plan(t *testing.T, d report.Data) {
	t.Helper()
	m := d.Memory
	if m.Reason != "" {
		if len(d.Unbound) == 0 {
			t.Fatalf("no plan: %s", m.Reason)
		}
		return
	}
	if d.Totals.Peak == nil || *d.Totals.Peak != m.Bound || m.Peak < m.Bound {
		t.Fatalf("a peak of %d, %d of them live", m.Peak, m.Bound)
	}
	if n := d.Totals.TimeNs; n != nil && max(*n-m.Duration, m.Duration-*n) > 1 {
		t.Fatalf("the steps take %d ns, the function %d", m.Duration, *n)
	}
	var live int64
	for _, b := range m.Buffers {
		if b.StartNs > b.EndNs || b.EndNs > m.Duration || b.Offset+b.Bytes > m.Peak || b.Name == "" {
			t.Fatalf("an odd buffer: %+v", b)
		}
		if b.AtPeak {
			live += b.Bytes
		}
	}
	if live < m.Bound {
		t.Fatalf("%d bytes live at the peak, not %d", live, m.Bound)
	}
}

// An unknown panel is an error that lists the panels.
func TestErrors(t *testing.T) {
	p := load("in.dmir", "func.func private @a() {\n  return\n}\nfunc.func @b() {\n  return\n}\nfunc.func @c() {\n  return\n}\n")
	for _, c := range []struct{ kind, function, want string }{
		{"graph", "", "@b"},
		{"graph", "@c", "@c"},
		{"memory", "a", "@a"},
		{"graph", "d", "there is no function @d with a body; there are @a, @b, @c"},
		{"pie", "", `there is no panel "pie"; there are graph, roofline, memory, mesh, timeline, pattern, diff`},
		{"timeline", "b", "@b runs on one device and has no timeline; divide it over a mesh, for example as dmir plan proposes"},
		{"diff", "", "a diff needs a version to compare with"},
	} {
		d, err := report.Build(p, c.kind, c.function, report.Options{})
		got := "@" + d.Function
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s of %q: got %s, want %s", c.kind, c.function, got, c.want)
		}
	}
	_, err := report.Build(load("in.dmir", ""), "graph", "", report.Options{})
	var missing *report.FunctionError
	if !errors.As(err, &missing) || err.Error() != "there is no function with a body" {
		t.Errorf("of nothing: %v", err)
	}
	if _, err := report.Build(p, "diff", "d", report.Options{Old: p}); !errors.As(err, &missing) {
		t.Errorf("diff of no function: %v", err)
	}
	d, err := report.Build(p, "diff", "c", report.Options{Old: p})
	if err != nil || len(d.Diff.Functions) != 1 || !d.Diff.Same {
		t.Errorf("diff of one function: %+v, %v", d.Diff, err)
	}
}

// A page holds its data, whatever is in the names.
func TestHTML(t *testing.T) {
	p := load("</script><b>.dmir", "func.func @\"</script>\"(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n")
	for _, kind := range []string{"graph", "roofline", "memory", "diff"} {
		d, err := report.Build(p, kind, "", report.Options{Old: p})
		if err != nil {
			t.Fatal(err)
		}
		html, err := report.HTML(d)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(html), `id="data">`)
		text, _, ok := strings.Cut(rest, "</script>")
		var back report.Data
		if err := json.Unmarshal([]byte(text), &back); !ok || err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if diff := cmp.Diff(d, back); diff != "" {
			t.Errorf("%s: the page holds other data:\n%s", kind, diff)
		}
	}
}
