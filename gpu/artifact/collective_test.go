package artifact_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
)

func TestDivided(t *testing.T) {
	p := artifacttest.Divided()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	file := encoded(t, p)
	got, err := artifact.Read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p, got, fromFile); d != "" {
		t.Error(d)
	}
	if file[8] != 4 || encoded(t, artifacttest.Program())[8] != 3 {
		t.Error("a program for one device is a file that earlier dmirs read, one for several is none")
	}
	both := artifacttest.Bucketed()
	if err := both.Check(); err != nil {
		t.Fatal(err)
	}
	if file = encoded(t, both); file[8] != 6 {
		t.Errorf("values that are exchanged as one are in a file of version %d", file[8])
	}
	if got, err = artifact.Read(bytes.NewReader(file)); err != nil || cmp.Diff(both, got, fromFile) != "" {
		t.Errorf("as one: %v, %s", err, cmp.Diff(both, got, fromFile))
	}
	const sum = 2 // the collective's step
	type program = artifact.Program
	for _, c := range []struct {
		name  string
		spoil func(p *program, k *artifact.Collective)
		want  string
	}{
		{"no mesh", func(p *program, _ *artifact.Collective) { p.Divided = nil }, "for one device"},
		{"an empty axis", func(p *program, _ *artifact.Collective) { p.Divided.Axes[0].Size = 0 }, "of 0 devices"},
		{"too many devices", func(p *program, _ *artifact.Collective) { p.Divided.Axes[0].Size = 1 << 40 }, "are the most"},
		{"a whole too few", func(p *program, _ *artifact.Collective) { p.Divided.Outputs = nil }, "wholes of 1 inputs and 0 outputs"},
		{"a whole of another rank", func(p *program, _ *artifact.Collective) { p.Divided.Inputs[0].Shape = []int64{2, 1000} }, "is not the whole of"},
		{"a partial whole", func(p *program, _ *artifact.Collective) { p.Divided.Inputs[0].Partial = []string{"x"} }, `no reduction is ""`},
		{"too many positions", func(p *program, _ *artifact.Collective) { p.Divided.Positions = make([]artifact.Position, 2) }, "2 inputs are positions"},
		{"a position that is none", func(p *program, _ *artifact.Collective) {
			p.Divided.Positions, p.Divided.Inputs = make([]artifact.Position, 1), nil
		}, "is a position, and no i64"},
		{"no collective", func(_ *program, k *artifact.Collective) { k.Op = "all_reuse" }, `no collective is "all_reuse"`},
		{"a buffer", func(_ *program, k *artifact.Collective) { k.To = 17 }, "buffer 17 of 6"},
		{"a constant", func(_ *program, k *artifact.Collective) { k.From, k.To = 1, 1 }, "writes the constant c"},
		{"other sizes", func(_ *program, k *artifact.Collective) { k.From = 2 }, "does not fill"},
		{"a gather in place", func(_ *program, k *artifact.Collective) { k.Op, k.Reduction = artifact.AllGather, "" }, "does not fill"},
		{"one buffer", func(_ *program, k *artifact.Collective) { k.Op, k.Reduction = artifact.Permute, "" }, "needs two"},
		{"no reduction", func(_ *program, k *artifact.Collective) { k.Reduction = "" }, `no reduction of all_reduce is ""`},
		{"a reduction of bits", func(_ *program, k *artifact.Collective) { k.Reduction = "or" }, "reduction of integers"},
		{"devices that are not there", func(_ *program, k *artifact.Collective) { k.Axes[0].Stride = 2 }, "axes that the mesh does not have"},
		{"an axis of none", func(_ *program, k *artifact.Collective) { k.Axes[0].Size = 0 }, "axes that the mesh does not have"},
		{"an axis twice", func(_ *program, k *artifact.Collective) { k.Axes = append(k.Axes, k.Axes[0]) }, "axes that the mesh does not have"},
		{"a pair of others", func(_ *program, k *artifact.Collective) {
			k.Op, k.Reduction, k.To, k.Pairs = artifact.Permute, "", 5, [][2]int{{0, 2}}
		}, "the pair [0 2] of 2 devices"},
		{"a pair twice", func(_ *program, k *artifact.Collective) {
			k.Op, k.Reduction, k.To, k.Pairs = artifact.Permute, "", 5, [][2]int{{0, 1}, {1, 1}}
		}, "the pair [1 1] of 2 devices"},
		{"several of a kind that has one", func(_ *program, k *artifact.Collective) {
			k.Op, k.Reduction, k.To, k.More = artifact.Permute, "", 5, []artifact.Move{{From: 4, To: 4}}
		}, "collective_permute of 2 values"},
		{"a value twice", func(_ *program, k *artifact.Collective) { k.More = []artifact.Move{{From: 3, To: 3}} }, "writes y, and exchanges it with another value"},
		{"a value that another is written over", func(_ *program, k *artifact.Collective) { k.More = []artifact.Move{{From: 3, To: 4}} }, "writes y, and exchanges it with another value"},
		{"a value of another size", func(_ *program, k *artifact.Collective) { k.More = []artifact.Move{{From: 4, To: 2}} }, "does not fill"},
		{"a value that is not there", func(_ *program, k *artifact.Collective) { k.More = []artifact.Move{{From: 4, To: 17}} }, "buffer 17 of 6"},
		{"a value of another type", func(p *program, k *artifact.Collective) {
			p.Buffers[4].Elem, k.More = "i32", []artifact.Move{{From: 4, To: 4}}
		}, "exchanges f32 and i32 as one"},
		{"a value before its operand", func(_ *program, k *artifact.Collective) { k.More = []artifact.Move{{From: 4, To: 4}} }, "reads it before anything is written"},
		{"of a copy", func(p *program, _ *artifact.Collective) { p.Steps[sum].Kind = artifact.StepFill }, "a collective, though it is a fill"},
		{"before its operand", func(p *program, _ *artifact.Collective) { p.Steps[1], p.Steps[2] = p.Steps[2], p.Steps[1] }, "reads it before anything is written"},
	} {
		p := artifacttest.Divided()
		c.spoil(p, &p.Steps[sum].Collective)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Groups are those of the devices of a mesh of 2 × 3 × 4.
func TestGroups(t *testing.T) {
	for _, c := range []struct {
		axes []artifact.Span
		rank int
		want []int
		at   int64
	}{
		{nil, 5, []int{5}, 0},
		{[]artifact.Span{{Size: 4, Stride: 1}}, 6, []int{4, 5, 6, 7}, 2},
		{[]artifact.Span{{Size: 2, Stride: 12}, {Size: 3, Stride: 4}}, 17, []int{1, 5, 9, 13, 17, 21}, 4},
		{[]artifact.Span{{Size: 2, Stride: 2}}, 9, []int{9, 11}, 0}, // half of an axis
	} {
		k := &artifact.Collective{Axes: c.axes, Pairs: [][2]int{{0, 1}}}
		pos := artifact.Position{Axes: c.axes}
		if got := k.Group(c.rank); !slices.Equal(got, c.want) || k.Len() != len(c.want) || pos.Of(c.rank) != c.at {
			t.Errorf("%v: group %v of %d, position %d", c.axes, got, c.rank, pos.Of(c.rank))
		}
		if len(c.want) > 1 {
			to, from := k.Peers(c.want[0])
			if back, own := k.Peers(c.want[1]); to != c.want[1] || from != -1 || back != -1 || own != c.want[0] {
				t.Errorf("%v: peers %d, %d and %d, %d", c.axes, to, from, back, own)
			}
		}
	}
}

// A file for several devices with other values in it is refused, or its groups are devices.
func TestHostileGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	accepted := 0
	for range 2000 {
		p, err := artifact.Read(bytes.NewReader(artifacttest.Mutated(artifacttest.Bucketed(), r)))
		if err != nil {
			continue
		}
		accepted++
		for i := range p.Steps {
			if p.Steps[i].Kind != artifact.StepCollective {
				continue
			}
			k := &p.Steps[i].Collective
			for rank := range min(p.Devices(), 64) {
				g := k.Group(rank)
				if !slices.IsSorted(g) || g[0] < 0 || g[len(g)-1] >= p.Devices() || !slices.Contains(g, rank) || p.Sent(k) < 0 {
					t.Fatal(fmt.Sprint(p.Divided.Axes, k, rank, g))
				}
				k.Peers(rank)
			}
		}
	}
	if accepted < 20 {
		t.Errorf("%d files were accepted", accepted)
	}
}
