package interp

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/testkit/randprog"
)

// divided is what TestFactors did with each op.
type divided struct {
	runs, factors map[string]int
	padded        int
}

// check divides s along every factor, pads it, and divides it along two at once.
func (d *divided) check(t *testing.T, s seen, r *rand.Rand) {
	t.Helper()
	f := op.FactorsOf(s.op)
	if f == nil {
		return
	}
	name := op.Of(s.op).Name
	if err := consistent(f, s.op); err != nil {
		t.Errorf("%s: the rule %+v: %v", what(s), f, err)
		return
	}
	into := factorsIn(f)
	all := slices.Sorted(maps.Keys(into))
	d.factors[name] += len(all)
	attempt := func(by division) {
		d.runs[name]++
		got, largest, err := by.pieces(t, f, s)
		if err == nil {
			err = sameResults(s, got, largest)
		}
		if err != nil {
			t.Errorf("%s\ndivided by %v, with the rule %+v: %v", what(s), by, f, err)
		}
	}
	for _, k := range all {
		for _, p := range into[k] {
			attempt(division{k: p})
		}
	}
	for _, k := range all {
		if f.Kinds[k] == op.Reduced && f.Even {
			continue
		}
		got, ok, err := padded(t, f, s, k, 1+r.IntN(3))
		if !ok {
			continue
		}
		d.padded++
		if err == nil {
			err = sameResults(s, got, make([]float64, len(got)))
		}
		if err != nil {
			t.Errorf("%s\nwith factor %d padded, with the rule %+v: %v", what(s), k, f, err)
		}
	}
	if len(all) > 1 {
		i, k := all[r.IntN(len(all))], all[r.IntN(len(all))]
		if i != k && len(into[i]) > 0 && len(into[k]) > 0 {
			attempt(division{i: into[i][r.IntN(len(into[i]))], k: into[k][r.IntN(len(into[k]))]})
		}
	}
}

// what is the op for messages.
func what(s seen) string {
	text := s.op.Name
	for _, a := range s.op.Attrs {
		text += fmt.Sprintf(" %s = %s", a.Name, a.Value)
	}
	for _, v := range s.op.Operands {
		text += fmt.Sprintf(" %s", v.Type)
	}
	text += " ->"
	for _, v := range s.op.Results {
		text += fmt.Sprintf(" %s", v.Type)
	}
	return text
}

// ruled are ops, or functions with one, for rules that examples do not show.
var ruled = []string{
	`%y = dm.reshape %x : (tensor<6x4xf32>) -> tensor<3x8xf32>`,
	`%y = dm.reshape %x : (tensor<4x6x5xf32>) -> tensor<2x12x5xf32>`,
	`%y = dm.reshape %x : (tensor<6x2x7xf32>) -> tensor<4x3x7xf32>`,
	`%y = dm.reshape %x : (tensor<24x1xf32>) -> tensor<2x1x3x4xf32>`,
	`%y = dm.reshape %x : (tensor<10x9xf32>) -> tensor<6x15xf32>`,
	`%y = dm.group_norm %x, %s, %b, groups = 4 : (tensor<2x8x3xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8x3xf32>`,
	`%y = dm.batch_norm %x, %s, %b : (tensor<4x6x2xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<4x6x2xf32>`,
	`%y = dm.batch_norm %x, %s, %b, %mean, %v : (tensor<4x6x2xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<4x6x2xf32>`,
	`%y = dm.convolution %x, %w : (tensor<2x6x1x5xf32>, tensor<4x6x1x3xf32>) -> tensor<2x4x1x3xf32>`,
	`%y = dm.convolution %x, %w : (tensor<2x4x6x5xf32>, tensor<4x4x1x3xf32>) -> tensor<2x4x6x3xf32>`,
	`%y = dm.convolution %x, %w, feature_group_count = 4 : (tensor<2x8x5xf32>, tensor<12x2x3xf32>) -> tensor<2x12x3xf32>`,
	`%y = dm.convolution %x, %w, feature_group_count = 6, padding = [[1, 1]], lhs_dilation = [2] : (tensor<2x6x5xf32>, tensor<6x1x3xf32>) -> tensor<2x6x9xf32>`,
	`%y = dm.cross_entropy %x, %l, reduction = sum : (tensor<4x6x5xf32>, tensor<4x6xi64>) -> tensor<f32>`,
	`%y = dm.cross_entropy %x, %l, reduction = none, dim = 0 : (tensor<5x4x6xf32>, tensor<4x6xi64>) -> tensor<4x6xf32>`,
	`%y = dm.reduce mul %x, dims = [1] : (tensor<4x6xf32>) -> tensor<4xf32>`,
	`%y = dm.reduce max %x, dims = [0], keep_dims = true : (tensor<4x6xi32>) -> tensor<1x6xi32>`,
	`%y = dm.reduce min %x : (tensor<4x6xui64>) -> tensor<ui64>`,
	regional("xor", "i1", "false"), regional("and", "i1", "true"), regional("or", "i32", "0"), regional("max", "f32", "-1.0e30"), regional("min", "i16", "32767"), regional("mul", "f64", "1.0"),
	`%y = dm.one_hot %x, classes = 5, dim = 1 : (tensor<4x6xi32>) -> tensor<4x5x6xf32>`,
	`%y = dm.gather %x, %i, dim = 2, batch_dims = 1 : (tensor<4x6x5x2xf32>, tensor<4x3xi64>) -> tensor<4x6x3x2xf32>`,
	`%y = dm.segment_ids %i, batch_dims = 1 : (tensor<4x6xi64>) -> tensor<4x5xi32>`,
	`%y = dm.segment_reduce add %x, %i, dim = 2, batch_dims = 1 : (tensor<4x2x6x3xf32>, tensor<4x5xi64>) -> tensor<4x2x4x3xf32>`,
	`%y = dm.scatter add %x, %i, %u, dim = 2, batch_dims = 1 : (tensor<4x6x5x2xf32>, tensor<4x3xi64>, tensor<4x6x3x2xf32>) -> tensor<4x6x5x2xf32>`,
	`%y = dm.scatter mul %x, %i, %u : (tensor<4x6xf32>, tensor<3xi64>, tensor<3x6xf32>) -> tensor<4x6xf32>`,
	`%y = dm.scatter %x, %i, %u, dim = 1 : (tensor<4x6xf32>, tensor<3xi64>, tensor<4x3xf32>) -> tensor<4x6xf32>`,
	`%y = dm.embedding %x, %i : (tensor<7x6xf32>, tensor<4x3xi64>) -> tensor<4x3x6xf32>`,
	`%y = dm.segment_reduce add %x, %i, dim = 1 : (tensor<4x6x8xf32>, tensor<4xi64>) -> tensor<4x3x8xf32>`,
	`%y = dm.segment_reduce max %x, %i : (tensor<6x4xi32>, tensor<4xi64>) -> tensor<3x4xi32>`,
	`%y = dm.searchsorted %s, %x : (tensor<5xf32>, tensor<4x6xf32>) -> tensor<4x6xi32>`,
	`%y = dm.slice %x, start_indices = [0, 1], limit_indices = [4, 5] : (tensor<4x6xf32>) -> tensor<4x4xf32>`,
	`%y = dm.slice %x, start_indices = [0], limit_indices = [6], dims = [1] : (tensor<4x6xf32>) -> tensor<4x6xf32>`,
	`%y = dm.dynamic_slice %x, %i, %j, slice_sizes = [2, 6] : (tensor<4x6xf32>, tensor<i64>, tensor<i64>) -> tensor<2x6xf32>`,
	`%y = dm.select_and_scatter max %x, %s, window_dimensions = [1, 1, 2], window_strides = [1, 1, 2] : (tensor<2x4x6xf32>, tensor<2x4x3xf32>) -> tensor<2x4x6xf32>`,
	`%y = dm.einsum "ii,ij->j" %x, %w : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<6xf32>`,
	`%y = dm.einsum "...ij,jk->...ik" %x, %w : (tensor<2x3x4x6xf32>, tensor<6x8xf32>) -> tensor<2x3x4x8xf32>`,
	`%y = dm.einsum "ij,k->" %x, %w : (tensor<4x6xi32>, tensor<4xi32>) -> tensor<i32>`,
	`%y = dm.attention %q, %k, %v : (tensor<4x3x6xf32>, tensor<4x5x6xf32>, tensor<4x5x2xf32>) -> tensor<4x3x2xf32>`,
	`%y = dm.attention %q, %k, %v, %m : (tensor<2x8x4x6xf32>, tensor<2x4x5x6xf32>, tensor<2x4x5x2xf32>, tensor<8x1x5xf32>) -> tensor<2x8x4x2xf32>`,
	`%y = dm.attention %q, %k, %v, causal = true : (tensor<2x4x4x6xf32>, tensor<2x1x5x6xf32>, tensor<2x1x5x2xf32>) -> tensor<2x4x4x2xf32>`,
	`%dq, %dk, %dv, %dm = dm.attention_grad %q, %k, %v, %y, %l, %dy, %m : (tensor<2x8x4x6xf32>, tensor<2x4x5x6xf32>, tensor<2x4x5x2xf32>, tensor<2x8x4x2xf32>, tensor<2x8x4xf32>, tensor<2x8x4x2xf32>, tensor<8x1x5xf32>) -> (tensor<2x8x4x6xf32>, tensor<2x4x5x6xf32>, tensor<2x4x5x2xf32>, tensor<8x1x5xf32>)`,
	`%dq, %dk, %dv = dm.attention_grad %q, %k, %v, %y, %l, %dy, causal = true : (tensor<4x4x6xf32>, tensor<2x5x6xf32>, tensor<2x5x2xf32>, tensor<4x4x2xf32>, tensor<4x4xf32>, tensor<4x4x2xf32>) -> (tensor<4x4x6xf32>, tensor<2x5x6xf32>, tensor<2x5x2xf32>)`,
	`%y = dm.constant dense<1.5> : tensor<4x6xf32>`,
	`%y = dm.iota dim = 1 : tensor<4x6xi32>`,
	`%y = dm.broadcast %x, dims = [0, 2] : (tensor<4x1xf32>) -> tensor<4x6x3xf32>`,
	`%y = dm.concatenate %x, %w, dim = 1 : (tensor<4x3x6xf32>, tensor<4x2x6xf32>) -> tensor<4x5x6xf32>`,
}

// regional is a reduction by a region of one op.
func regional(name, elem, neutral string) string {
	return fmt.Sprintf(`func.func @f(%%x: tensor<4x6x%[2]s>) -> tensor<4x%[2]s> {
  %%z = dm.constant dense<%[3]s> : tensor<%[2]s>
  %%y = dm.reduce %%x, %%z, dims = [1] : (tensor<4x6x%[2]s>, tensor<%[2]s>) -> tensor<4x%[2]s> {
  ^bb0(%%a: %[2]s, %%b: %[2]s):
    %%c = dm.%[1]s %%b, %%a : %[2]s
    dm.yield %%c : %[2]s
  }
  return %%y : tensor<4x%[2]s>
}`, name, elem, neutral)
}

// oneOp is the function of an op whose operands are its arguments.
func oneOp(line string) string {
	results, rest, _ := strings.Cut(line, " = ")
	head, signature, _ := strings.Cut(rest, " : ")
	in, out, ok := strings.Cut(strings.TrimPrefix(signature, "("), ") -> ")
	if !ok {
		in, out = "", signature
	}
	var args []string
	if in != "" {
		names := regexp.MustCompile(`%\w+`).FindAllString(head, -1)
		for i, t := range strings.SplitAfter(in, ">") {
			if t != "" {
				args = append(args, names[i]+": "+strings.TrimPrefix(t, ", "))
			}
		}
	}
	return fmt.Sprintf("func.func @f(%s) -> %s {\n  %s\n  return %s : %s\n}", strings.Join(args, ", "), out, line, results, strings.Trim(out, "()"))
}

// everyOp visits the ops of the examples in several element types, of ruled, and of random programs.
func everyOp(t *testing.T, visit func(t *testing.T, s seen, r *rand.Rand)) {
	r := rand.New(rand.NewPCG(1, 14))
	each := func(t *testing.T, m *ir.Module, args []*tensor.Tensor) {
		for _, s := range watch(t, m, args) {
			// Examples run in element types that not all forms of an op have.
			if !op.Grouped(s.op) && verify.Op(s.op) == nil {
				visit(t, s, r)
			}
		}
	}
	for _, d := range op.All() {
		if d.Family == op.Groups || d.Family == op.Distribution {
			continue
		}
		for _, elem := range elemsOf(d) {
			if elem.Packed() && len(d.Regions) > 0 {
				continue
			}
			t.Run(d.Name+"/"+elem.String(), func(t *testing.T) {
				m := read(t, inElem(d.Example, elem))
				args, err := Inputs(t.Context(), m.Funcs[0], nil, 1, nil)
				if err != nil {
					t.Fatal(err)
				}
				for i, a := range args {
					args[i] = tame(d, i, a)
				}
				each(t, m, args)
			})
		}
	}
	for _, text := range ruled {
		if !strings.HasPrefix(text, "func") {
			text = oneOp(text)
		}
		m := read(t, text)
		args, err := Inputs(t.Context(), m.Funcs[0], nil, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		each(t, m, args)
	}
	programs := 800
	if testing.Short() {
		programs = 60
	}
	for seed := range uint64(programs) {
		m := read(t, randprog.Program(seed, randprog.Options{}))
		args, err := Inputs(t.Context(), m.Funcs[0], nil, seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		each(t, m, args)
	}
}

// Pieces of operands give the pieces of the results, and parts of them, that the rule of an op
// promises, and every op has a rule or a reason why it has none.
func TestFactors(t *testing.T) {
	d := &divided{runs: map[string]int{}, factors: map[string]int{}}
	everyOp(t, func(t *testing.T, s seen, r *rand.Rand) { d.check(t, s, r) })
	for _, def := range op.All() {
		switch n := d.factors[def.Name]; {
		case def.Whole != "" && n > 0:
			t.Errorf("%s is whole, but has %d factors", def.FullName(), n)
		case def.Whole == "" && n == 0 && def.Kernel != op.Structure:
			t.Errorf("no dimension of %s was divided, and Whole does not give the reason", def.FullName())
		case n > 0 && def.Divides == "" && !def.Is(op.Pointwise):
			t.Errorf("%s does not state what Divides", def.FullName())
		}
	}
	runs, factors := 0, 0
	for name := range d.runs {
		runs, factors = runs+d.runs[name], factors+d.factors[name]
	}
	t.Logf("%d ops, %d factors, %d divisions, %d padded", len(d.runs), factors, runs, d.padded)
}

// With parts that sum to operands, an op that is linear in these has parts of its results.
func TestLinear(t *testing.T) {
	sets := map[string]int{}
	everyOp(t, func(t *testing.T, s seen, r *rand.Rand) {
		f := op.FactorsOf(s.op)
		if f == nil {
			return
		}
		for _, set := range f.Linear {
			if len(set) == 0 {
				t.Errorf("%s: an empty set", what(s))
			}
			var in [3][]*tensor.Tensor // two parts, and their sum
			for i, x := range s.in {
				y := tensor.New(x.Elem, x.Shape...)
				for k := range x.Len() {
					if v := x.Float(k); x.Elem.IsFloat() && x.Elem.Bytes() > 1 {
						y.SetFloat(k, math.Copysign(max(1, min(3, math.Round(math.Abs(v)))), v))
					} else {
						copyElement(y, k, x, k)
					}
				}
				in[0], in[1], in[2] = append(in[0], y), append(in[1], y), append(in[2], y)
				if s.op.Name == "dm.pad" && i == 1 && !slices.Contains(set, i) {
					in[0][i], in[1][i], in[2][i] = x, x, x
				}
				if slices.Contains(set, i) {
					in[0][i], in[1][i] = smallNumbers(x, r), smallNumbers(x, r)
					in[2][i] = combined("", in[0][i], in[1][i])
				}
			}
			operands := make([]*types.Tensor, len(s.in))
			for i, x := range s.in {
				operands[i] = typed(s.op.Operands[i].Type, x)
			}
			m, _ := alone(s.op, operands)
			var out [3][]*tensor.Tensor
			for i := range in {
				var err error
				if out[i], err = try(t, m, Options{}, in[i]...); err != nil {
					t.Fatalf("%s: %v", what(s), err)
				}
			}
			s.out = out[2]
			sum, largest := make([]*tensor.Tensor, len(s.out)), make([]float64, len(s.out))
			for i := range sum {
				sum[i] = combined("", out[0][i], out[1][i])
				largest[i] = max(magnitude(out[0][i]), magnitude(out[1][i]))
			}
			if err := sameResults(s, sum, largest); err != nil {
				t.Errorf("%s in operands %v: %v", what(s), set, err)
			}
			sets[op.Of(s.op).Name]++
		}
	})
	for _, d := range op.All() {
		if d.Linear != nil && sets[d.Name] == 0 {
			t.Errorf("%s was not linear in any operand", d.FullName())
		}
	}
	t.Log(sets)
}

// smallNumbers are whole ones in the place of x.
func smallNumbers(x *tensor.Tensor, r *rand.Rand) *tensor.Tensor {
	y := tensor.New(x.Elem, x.Shape...)
	for k := range y.Len() {
		y.SetInt(k, int64(r.IntN(9)-4))
	}
	return y
}
