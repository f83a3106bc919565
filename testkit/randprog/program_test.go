package randprog_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/dialect/flatten"
	"dmir/dialect/op"
	"dmir/syntax/source"
	"dmir/testkit/randprog"
)

// Programs are valid and reproducible, and every op of the registry and every element
// type occurs: a new op needs a kind of statement.
func TestProgram(t *testing.T) {
	var all strings.Builder
	for seed := range uint64(2000) {
		o := randprog.Options{Gradient: seed%4 == 3}
		text := randprog.Program(seed, o)
		if seed%50 == 0 && randprog.Program(seed, o) != text {
			t.Errorf("seed %d: another program the second time", seed)
		}
		p := program.Load(source.New("r.dmir", text), program.Options{})
		for _, d := range p.Diags {
			t.Errorf("seed %d: %s %s\n%s", seed, d.Code, d.Message, text)
		}
		all.WriteString(text)
	}
	become := map[string]bool{"dm.segment_product": false, "dm.segment_dense_product": false, "dm.segment_sample": false} // what products of sparse matrices become, and whether one did
	allBecome := func() bool { return !slices.Contains(slices.Collect(maps.Values(become)), false) }
	for seed := range uint64(50) {
		all.WriteString(randprog.Sparse(seed))
	}
	for seed := uint64(0); seed < 1000 && !allBecome(); seed++ {
		text := randprog.Sparse(seed)
		for _, fn := range program.Load(source.New("s.dmir", text), program.Options{}).Modules[0].Funcs {
			flat, _ := flatten.Func(fn)
			for _, o := range flat.Body.Ops {
				if _, ok := become[o.Name]; ok {
					become[o.Name] = true
				}
			}
		}
	}
	for _, d := range op.All() {
		if d.Family == op.Distribution { // programs run on one device
			continue
		}
		if !strings.Contains(all.String(), d.FullName()+" ") && !become[d.FullName()] {
			t.Errorf("no %s was written", d.FullName())
		}
	}
	for _, elem := range strings.Fields("f64 f32 f16 bf16 f8E4M3FN f8E5M2 i64 i32 i16 i8 ui64 ui32 ui16 ui8 i4 ui4 i1") {
		if !strings.Contains(all.String(), "x"+elem+">") {
			t.Errorf("no tensor of %s was written", elem)
		}
	}
}

// A failing program is reduced to the statements that make it fail; a loop around them has some of its own.
func TestShrink(t *testing.T) {
	for seed := range uint64(40) {
		text := randprog.Program(seed, randprog.Options{Ops: 30})
		var words []string
		first, _, _ := strings.Cut(text, "func.func private") // only this one is reduced
		for _, d := range op.All() {
			if w := d.FullName() + " "; strings.Contains(first, w) && w != "dm.constant " && w != "dm.yield " {
				words = append(words, w)
			}
		}
		if len(words) == 0 {
			continue
		}
		want := words[int(seed)%len(words)]
		small := randprog.Shrink(text, func(candidates []string) int {
			for i, c := range candidates {
				if strings.Contains(c, want) {
					return i
				}
			}
			return -1
		})
		if p := program.Load(source.New("s.dmir", small), program.Options{}); p.HasErrors() {
			t.Fatalf("seed %d: %s\n%s", seed, p.Diags[0].Message, small)
		}
		reduced, _, _ := strings.Cut(small, "func.func private")
		if n := strings.Count(reduced, "= dm."); n > 12 || !strings.Contains(small, want) {
			t.Errorf("seed %d: %d ops are left to have one %s:\n%s", seed, n, want, small)
		}
	}
}
