package fuse_test

import (
	"strings"
	"testing"

	"dmir/compile/bind"
	"dmir/compile/fuse"
	"dmir/compile/gradient"
	"dmir/compile/inline"
	"dmir/compile/pass"
)

// joint is the layer of examples/bert_encoder.dmir as it is trained: forward and
// backward in one function, which is given the gradient of the layer's output.
func joint(t testing.TB) *pass.Unit {
	t.Helper()
	return jointOf(t, read(t, encoder))
}

const encoder = "../../examples/bert_encoder.dmir"

func jointOf(t testing.TB, text string) *pass.Unit {
	t.Helper()
	u := unit(t, encoder, text, nil)
	end := u.Func.Body.Terminator()
	end.SetOperands(end.Operands[0]) // what the backward pass needs is the gradient's business
	u.Func.Retype()
	if err := pass.Run(u, []pass.Pass{inline.Pass(), bind.Pass()}, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gradient.Function(u.Module, u.Func, gradient.Options{Joint: true, Seeded: true})
	if err != nil {
		t.Fatal(err)
	}
	u.Module.AddFunc(f)
	u.Module.Ops = append(u.Module.Ops, f.Op)
	u.Func = f
	return u
}

// literature is what hand-written kernels leave of the joint layer to operators
// other than contractions, in elements read and written: those of Ivanov et al.,
// "Data Movement Is All You Need" (MLSys 2021), batch 8, sequence 512.
const literature = 591_441_920

func TestJointLayer(t *testing.T) {
	u := joint(t)
	f, err := fuse.Stats(u)
	if err != nil {
		t.Fatal(err)
	}
	pretty(t, u)
	whole(t, u)
	t.Logf("kernels %d -> %d, moved %d -> %d B (minimum %d), predicted %.1f -> %.1f µs, gap %.2f %%, outside contractions %d elements, %d copies, %v",
		f.KernelsBefore, f.KernelsAfter, f.MovedBefore, f.MovedAfter, f.Minimum, f.TimeBefore/1e3, f.TimeAfter/1e3, 100*f.Gap, f.NonContractionAfter, f.Recomputed, f.Elapsed)
	if f.NonContractionAfter >= literature {
		t.Errorf("%d elements are read and written outside contractions, by hand %d", f.NonContractionAfter, literature)
	}
	if f.Gap > 0.1 {
		t.Errorf("another plan might take %.1f %% less time", 100*f.Gap)
	}
}

// The same layer with small sizes computes the same bits before and after.
func TestJointSmall(t *testing.T) {
	small := strings.NewReplacer("8x512x3x16x64", "2x8x3x2x4", "8x512x1x16x64", "2x8x1x2x4", "8x512x16x64", "2x8x2x4", "8x16x512x512", "2x2x8x8",
		"8x512x1024", "2x8x8", "8x512x4096", "2x8x16", "3x16x64x1024", "3x2x4x8", "3x16x64", "3x2x4", "16x64x1024", "2x4x8",
		"1024x4096", "8x16", "4096x1024", "16x8", "<1024xf16", "<8xf16", "<4096xf16", "<16xf16")
	u := jointOf(t, small.Replace(read(t, encoder)))
	f := same(t, u, fuse.Options{Refuse: true})
	if f.KernelsAfter >= f.KernelsBefore {
		t.Errorf("kernels %d -> %d", f.KernelsBefore, f.KernelsAfter)
	}
}

// BenchmarkJointLayer fuses the forward and backward BERT-large layer.
func BenchmarkJointLayer(b *testing.B) {
	for range b.N {
		b.StopTimer()
		u := joint(b)
		b.StartTimer()
		if _, err := fuse.Stats(u); err != nil {
			b.Fatal(err)
		}
	}
}
