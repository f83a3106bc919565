package raise_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"dmir/analysis/cost"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/dialect/raise"
	"dmir/dialect/stablehlo"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

var (
	update  = flag.Bool("update", false, "rewrite the golden file")
	mutants = flag.Int("mutants", 3000, "how many programs TestMutants makes")
)

const golden = "testdata/spellings.txtar"

// load is the program of a text without what is raised in it; nil if it is not valid.
func load(text string) *ir.Module {
	tree := parse.File(source.New("test.mlir", text))
	if len(tree.Diags) > 0 {
		return nil
	}
	ms := lower.File(tree)
	if stablehlo.Holds(tree) {
		ms = stablehlo.Import(tree)
	}
	if len(ms) != 1 {
		return nil
	}
	for _, d := range append(ms[0].Diags, verify.Module(ms[0])...) {
		if d.Severity == diag.Error {
			return nil
		}
	}
	return ms[0]
}

// listed is what was found, as one line.
func listed(found map[string]int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, fmt.Sprintf("%d %s", found[name], name))
	}
	return strings.Join(out, ", ")
}

// Each program of the golden file becomes the text beside it, which verifies, computes
// the same and, by the count of costs, moves no more.
func TestSpellings(t *testing.T) {
	ar, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var out []txtar.File
	for i, f := range ar.Files {
		name, is := strings.CutSuffix(f.Name, ".mlir")
		if !is {
			continue
		}
		out = append(out, f)
		t.Run(name, func(t *testing.T) {
			m := load(string(f.Data))
			if m == nil {
				t.Fatal("not valid")
			}
			found := raise.Module(m)
			if strings.HasPrefix(name, "not_") != (len(found) == 0) && !partly[name] {
				t.Errorf("raised: %s", listed(found))
			}
			got, err := print.Source(m)
			if err != nil {
				t.Fatal(err)
			}
			got = "// " + listed(found) + "\n" + got
			out = append(out, txtar.File{Name: name + ".want", Data: []byte(got)})
			if !*update && (i+1 == len(ar.Files) || ar.Files[i+1].Name != name+".want") {
				t.Fatal("run with -update")
			}
			if !*update {
				if d := cmp.Diff(string(ar.Files[i+1].Data), got); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			}
			same(t, string(f.Data))
			cheaper(t, string(f.Data))
		})
	}
	if *update {
		ar.Files = out
		if err := os.WriteFile(golden, txtar.Format(ar), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// partly are programs without the composite that their name says, of which a part is
// another one, and an embedding that is imported as one.
var partly = map[string]bool{
	"jax_embed":                true,
	"not_attention_given_mask": true, "not_attention_window": true, "not_attention_sliced_later": true,
	"not_layer_norm_epsilon_outside": true, "not_layer_norm_other_dim": true, "not_variance": true,
}

// same reports where a program computes something else with what is raised in it, for
// numbers that are drawn and for ones at the edges. It returns what was raised.
func same(t *testing.T, text string) map[string]int {
	t.Helper()
	var found map[string]int
	for _, edges := range [][]float64{nil, edgeValues} {
		before, after := load(text), load(text)
		if before == nil {
			return nil
		}
		if found = raise.Module(after); len(found) == 0 {
			return nil
		}
		for _, d := range verify.Module(after) {
			if d.Severity == diag.Error {
				t.Fatalf("%s: %s", d.Code, d.Message)
			}
		}
		nan := ""
		if found["cross_entropy"] > 0 {
			nan = "loss"
		}
		if found["attention"]+found["causal mask"] > 0 {
			nan = "zero"
			if edges != nil {
				edges, nan = smallEdges, "any"
			}
		}
		want, got := run(t, before, edges), run(t, after, edges)
		if want == nil {
			return found
		}
		for i := range want {
			if j, x, y := differs(want[i], got[i], nan); j >= 0 {
				t.Errorf("result %d, element %d: %g became %g (edges %t, raised %s)", i, j, x, y, edges != nil, listed(found))
			}
		}
	}
	return found
}

var edgeValues = []float64{0, math.Copysign(0, -1), 1e-30, math.Inf(1), math.Inf(-1), math.NaN(), 1e4, -1e4, 30, -30}

// edgeIndices are at the ends of small dimensions and of types, and PyTorch's for rows
// that do not count.
var edgeIndices = []int64{-1, 0, 4, 5, -5, 9, 10, -10, -11, -100, math.MaxInt32, math.MinInt32}

// smallEdges leaves out those whose products are so great that how they are rounded
// decides which key an attention takes.
var smallEdges = edgeValues[:6]

// run is the results of the first function, for arguments with some of edges among
// their elements; nil if it cannot be run.
func run(t *testing.T, m *ir.Module, edges []float64) []*tensor.Tensor {
	t.Helper()
	args, err := interp.Inputs(t.Context(), m.Funcs[0], nil, 3, nil)
	if err != nil {
		return nil
	}
	if len(edges) > 0 {
		r := rand.New(rand.NewPCG(4, 5))
		for _, a := range args {
			for i := range a.Len() {
				switch {
				case a.Elem.IsFloat() && r.IntN(12) == 0:
					a.SetFloat(i, edges[r.IntN(len(edges))])
				case a.Elem.IsInt() && a.Elem != types.I1 && r.IntN(3) == 0:
					a.SetInt(i, edgeIndices[r.IntN(len(edgeIndices))])
				}
			}
		}
	}
	out, err := interp.Run(t.Context(), m, m.Funcs[0], args, interp.Options{Threads: 1})
	if err != nil {
		return nil
	}
	return out.Outputs
}

// differs is the first element of y that is not that of x but for rounding, -1 where
// there is none. NaN differs in an attention: PyTorch's gives "zero" for a query that has
// NaN among its scores, and for "any" NaN a causal one sees no later keys, while a program
// that writes a finite number in their place attends to them where all other scores are
// minus infinity, and one that adds it keeps their NaN. A "loss" that is infinite since a
// logit is, is NaN as a cross entropy.
func differs(x, y *tensor.Tensor, nan string) (int, float64, float64) {
	limit := 3e-5
	if x.Elem.Bytes() == 2 {
		limit = 3e-2
	}
	for i := range x.Len() {
		a, b := x.Float(i), y.Float(i)
		if nan == "loss" && math.IsInf(a, 1) && math.IsNaN(b) {
			continue
		}
		if nan == "zero" && a == 0 && math.IsNaN(b) || nan == "any" && (math.IsNaN(a) || math.IsNaN(b)) {
			continue
		}
		if a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= limit*(1+math.Abs(a)) {
			continue
		}
		return i, a, b
	}
	return -1, 0, 0
}

// cheaper reports where the raised program moves or computes more.
func cheaper(t *testing.T, text string) {
	t.Helper()
	total := func(m *ir.Module) (flop, moved int64) {
		c := cost.Function(m.Funcs[0], m, nil)
		flop, _ = c.FLOP.Int()
		moved, _ = c.Moved().Int()
		return flop, moved
	}
	after := load(text)
	raise.Module(after)
	f, b := total(load(text))
	f2, b2 := total(after)
	if b2 > b {
		t.Errorf("%d B moved became %d", b, b2)
	}
	// A composite counts FLOP by its definition: a normalization those of the parameters
	// too, a softmax one addition more for each row.
	if 2*f2 > 3*f {
		t.Errorf("%d FLOP became %d", f, f2)
	}
}

var token = regexp.MustCompile(`dense<[^>]*>|dims = \[[0-9, ]*\]|dimensions = \[[0-9, ]*\]|(?:dm|stablehlo)\.[a-z]+|%[a-z0-9_]+`)

// arity are ops that take operands of the same types.
var arity = []string{
	"abs exp tanh neg sqrt rsqrt log logistic erf", "exponential negate sqrt rsqrt log logistic tanh",
	"add sub mul div max min pow", "add subtract multiply divide maximum minimum",
}

// Programs in which one number, dimension, op or operand is another one are not raised
// or compute the same.
func TestMutants(t *testing.T) {
	ar, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, f := range ar.Files {
		if strings.HasSuffix(f.Name, ".mlir") {
			texts = append(texts, string(f.Data))
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	valid, raised := 0, 0
	for n := range *mutants {
		text := texts[n%len(texts)]
		at := token.FindAllStringIndex(text, -1)
		span := at[r.IntN(len(at))]
		old := text[span[0]:span[1]]
		var others []string
		for _, a := range at { // another one of its kind
			if s := text[a[0]:a[1]]; s[0] == old[0] && s[1] == old[1] && s != old {
				others = append(others, s)
			}
		}
		if strings.HasPrefix(old, "dense<") {
			others = append(others, "dense<0.5>", "dense<2.0>", "dense<-1.0>", "dense<0.0>", "dense<0.9>")
		}
		dialect, name, _ := strings.Cut(old, ".")
		for _, alike := range arity {
			if list := strings.Fields(alike); slices.Contains(list, name) {
				others = nil
				for _, n := range list {
					others = append(others, dialect+"."+n)
				}
			}
		}
		if len(others) == 0 {
			continue
		}
		mutant := text[:span[0]] + others[r.IntN(len(others))] + text[span[1]:]
		if load(mutant) == nil {
			continue
		}
		valid++
		if len(same(t, mutant)) > 0 {
			raised++
		}
		if t.Failed() {
			t.Fatal(mutant)
		}
	}
	t.Logf("%d mutants are valid, in %d something is raised", valid, raised)
	if valid < *mutants/10 || raised == 0 {
		t.Errorf("%d of %d mutants are valid, %d are raised", valid, *mutants, raised)
	}
}

// What is raised in the programs of other projects: as they stand, with the results
// that they keep for a backward pass, and with their first result alone.
func TestModels(t *testing.T) {
	need.Long(t)
	root := filepath.Join("..", "..", "..", "shared", "conformance", "models", "byteir")
	_, err := os.Stat(root)
	need.OK(t, err)
	for _, c := range []struct{ file, all, first string }{
		{"BertTiny_FW.mlir", "", "2 attention"},
		{"BertTiny_BW.mlir", "", ""},
		{"NanoGPT_FW.mlir", "", "6 gelu"},
		{"MLPInference.mlir", "2 relu", "2 relu"},
	} {
		t.Run(c.file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, c.file))
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range []bool{false, true} {
				m, before := load(string(text)), load(string(text))
				if m == nil {
					t.Fatal("not valid")
				}
				want := c.all
				if one {
					want = c.first
					firstResult(m.Funcs[0])
					firstResult(before.Funcs[0])
				}
				if got := listed(raise.Module(m)); got != want {
					t.Errorf("raised %q, want %q (first result alone: %t)", got, want, one)
				}
				for _, d := range verify.Module(m) {
					if d.Severity == diag.Error {
						t.Errorf("%s: %s", d.Code, d.Message)
					}
				}
				if n, known := cost.Function(m.Funcs[0], m, nil).FLOP.Int(); !one || !known || n > maxFLOP {
					continue // as long as the reference executor takes seconds
				}
				x, y := run(t, before, nil), run(t, m, nil)
				if len(x) == 0 || len(x) != len(y) {
					t.Fatalf("%d results became %d", len(x), len(y))
				}
				if i, a, b := differs(x[0], y[0], ""); i >= 0 {
					t.Errorf("element %d: %g became %g", i, a, b)
				}
			}
		})
	}
}

const maxFLOP = 20e9

// firstResult makes f return its first result alone, as for inference.
func firstResult(f *ir.Func) {
	end := f.Body.Terminator()
	end.SetOperands(end.Operands[0])
	f.Retype()
	op.RemoveDead(f.Body)
}
