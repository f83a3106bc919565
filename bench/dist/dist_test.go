package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dmir/compile/distribute"
	"dmir/compile/interp"
	"dmir/dialect/op"
	"dmir/dialect/raise"
	"dmir/dialect/stablehlo"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// What one device runs computes with the others what one device computes alone, and so it does after
// an export to StableHLO and an import.
func TestDivided(t *testing.T) {
	need.Long(t)
	for _, file := range files("testdata") {
		t.Run(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(t *testing.T) {
			d, err := load(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			o, err := d.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if o.one != nil {
				if x := apart(o.all, o.one); !(x <= tolerance) {
					t.Errorf("the divided program differs by %g\n%s", x, d.text)
				}
			}
			if d.device == "" {
				t.Fatalf("what one device runs is not exported: %s", d.unsupported)
			}
			m := stablehlo.Import(parse.File(source.New("device.mlir", d.device)))[0]
			for _, e := range m.Diags {
				t.Fatalf("%s\n%s", e.Message, d.device)
			}
			raise.Module(m)
			again := m.Funcs[0]
			if !op.PerDevice(again.Op) {
				t.Fatalf("it is not imported as what one device runs\n%s", d.device)
			}
			p, err := distribute.Of(m, again)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := p.Run(t.Context(), o.args, interp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if x := apart(got, o.all); !(x <= tolerance) {
				t.Errorf("after an export and an import it differs by %g\n%s", x, d.device)
			}
		})
	}
}

// JAX runs on eight devices what is exported, with its shardings and as what one device runs, and
// what it has printed itself, and computes the same; and no program sends more than after XLA's
// partitioner.
func TestJAX(t *testing.T) {
	need.Long(t)
	python := need.Tool(t, "python3", "it runs JAX")
	if err := exec.Command(python, "-c", "import jax").Run(); err != nil {
		need.OK(t, fmt.Errorf("python3 has no JAX (pip install jax==0.10.2): %w", err))
	}
	r := &report{}
	more, err := r.fill(t.Context(), python, ".", "", false, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) < 15 {
		t.Errorf("%d programs", len(r.Rows))
	}
	if len(more) > 0 {
		t.Errorf("dmir sends more than XLA in %s\n%s", strings.Join(more, ", "), r.table())
	}
}

// The forms in which XLA writes collectives, their groups, and loops around them.
func TestCollectives(t *testing.T) {
	text := `HloModule program, num_partitions=8

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  ROOT %s = f32[] add(%x, %y)
}

%body (p: (s32[], f32[4])) -> (s32[], f32[4]) {
  %p = (s32[], f32[4]{0}) parameter(0)
  %g = f32[4]{0} get-tuple-element(%p), index=1
  %c = f32[4]{0} collective-permute(%g), channel_id=1, source_target_pairs={{0,1},{1,0},{2,2}}
  ROOT %t = (s32[], f32[4]{0}) tuple(%i, %c)
}

ENTRY %main (a: f32[8,4], b: bf16[4]) -> f32[8,4] {
  %a = f32[8,4]{1,0} parameter(0)
  %r = (f32[], /*index=1*/f32[8,4]{1,0}) all-reduce(%z, %a), channel_id=1, replica_groups=mesh['axis_0'=2,'axis_1'=4], device_ids=([2,4]T(1,0)) {'axis_1'}, use_global_device_ids=true, to_apply=%add
  %s = f32[2,4]{1,0} reduce-scatter(%a), replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}, to_apply=%add
  %g = (bf16[4]{0}, bf16[8]{0}) all-gather-start(%b), replica_groups=[4,2]<=[8], dimensions={0}
  %h = bf16[8]{0} all-gather-done(%g)
  %e = (f32[1]{0}, f32[1]{0}) all-to-all(%u, %v), replica_groups={{0,1},{2,3},{4,5},{6,7}}
  %n = pred[3]{0} all-reduce(%q), replica_groups={}, to_apply=%add
  %m = f32[8]{0} all-reduce(%q), replica_groups=mesh['a'=8] {'a':(1)4}, to_apply=%add
  %k = f32[2]{0} dynamic-slice(%m, %i), dynamic_slice_sizes={2}
  %w = (s32[], f32[4]{0}) while(%t), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"7"}}
  ROOT %o = f32[8,4]{1,0} copy(%a)
}
`
	got, err := collectives(text, 8)
	if err != nil {
		t.Fatal(err)
	}
	want := []collective{
		{"all-reduce", 132, 4, 0, 0, 1},
		{"reduce-scatter", 128, 4, 0, 0, 1},
		{"all-gather", 8, 2, 0, 0, 1},
		{"all-to-all", 8, 2, 0, 0, 1},
		{"all-reduce", 3, 8, 0, 0, 1},
		{"all-reduce", 32, 4, 0, 32, 1},
		{"collective-permute", 16, 8, 2, 0, 7},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	var sent []int64
	for _, c := range got {
		sent = append(sent, c.sent(8))
	}
	if want := []int64{8 / 4 * 2 * 132 * 3, 8 / 4 * 128 * 3, 8 * 8, 8 / 2 * 8, 2 * 3 * 7, 8 / 4 * 2 * 32 * 3, 16 * 2 * 7}; !slices.Equal(sent, want) {
		t.Errorf("sent %v, want %v", sent, want)
	}
	for what, text := range map[string]string{
		"no ENTRY":                     "%f (x: f32[]) -> f32[] {\n}\n",
		"known number of iterations":   strings.Replace(text, "known_trip_count", "other", 1),
		"groups of devices that canno": strings.Replace(text, "replica_groups=[4,2]<=[8]", "replica_groups=?", 1),
		"send is not counted":          strings.Replace(text, "f32[8,4]{1,0} copy(%a)", "(f32[8], token[]) send(%a)", 1),
	} {
		if _, err := collectives(text, 8); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
