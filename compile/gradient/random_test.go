package gradient_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dmir/compile/gradient"
	"dmir/compile/tensor"
	"dmir/testkit/randprog"
)

// shaped is a value of a random program.
type shaped struct {
	name  string
	shape []int
}

func (v shaped) typ() string {
	s := ""
	for _, d := range v.shape {
		s += fmt.Sprintf("%dx", d)
	}
	return "tensor<" + s + "f64>"
}

// smooth is a random function of smooth ops, in kernels here and there.
func smooth(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 4))
	vals := []shaped{{"%x", []int{4, 3}}, {"%y", []int{3}}, {"%z", []int{3, 4}}, {"%s", nil}}
	var args []string
	for _, v := range vals {
		args = append(args, v.name+": "+v.typ())
	}
	var body strings.Builder
	line := func(indent, name, text string, shape []int, operands ...shaped) shaped {
		to := shaped{name, shape}
		var names, types []string
		for _, v := range operands {
			names, types = append(names, v.name), append(types, v.typ())
		}
		fmt.Fprintf(&body, "%s%s = dm.%s : (%s) -> %s\n", indent, name, strings.Replace(text, "$", strings.Join(names, ", "), 1), strings.Join(types, ", "), to.typ())
		return to
	}
	statement := func(indent, name string) shaped {
		x := vals[r.IntN(len(vals))]
		rank := len(x.shape)
		switch k := r.IntN(12); {
		case k < 3:
			return line(indent, name, []string{"tanh", "sin", "cos", "logistic", "silu", "gelu", "erf"}[r.IntN(7)]+" $", x.shape, x)
		case k < 6:
			fits := slices.DeleteFunc(slices.Clone(vals), func(y shaped) bool {
				d := rank - len(y.shape)
				return d < 0 || !slices.Equal(x.shape[d:], y.shape)
			})
			y := fits[r.IntN(len(fits))]
			if r.IntN(2) == 0 {
				return line(indent, name, []string{"add", "sub", "mul"}[r.IntN(3)]+" $", x.shape, y, x)
			}
			return line(indent, name, []string{"add", "sub", "mul", "atan2"}[r.IntN(4)]+" $", x.shape, x, y)
		case k < 7 && rank > 0:
			d := r.IntN(rank)
			return line(indent, name, fmt.Sprintf("%s $, dim = %d", []string{"softmax", "log_softmax", "cumsum"}[r.IntN(3)], d), x.shape, x)
		case k < 8 && rank > 0:
			return line(indent, name, fmt.Sprintf("%s $, epsilon = 0.1", []string{"layer_norm", "rms_norm"}[r.IntN(2)]), x.shape, x)
		case k < 9 && rank > 0:
			d := r.IntN(rank)
			return line(indent, name, fmt.Sprintf("reduce add $, dims = [%d]", d), slices.Delete(slices.Clone(x.shape), d, d+1), x)
		case k < 10 && rank == 2:
			return line(indent, name, "transpose $, dims = [1, 0]", []int{x.shape[1], x.shape[0]}, x)
		case k < 11 && rank == 2:
			for _, y := range vals {
				if len(y.shape) == 2 && y.shape[0] == x.shape[1] {
					return line(indent, name, `einsum "ij,jk->ik" $`, []int{x.shape[0], y.shape[1]}, x, y)
				}
			}
		case rank > 0:
			twice := slices.Clone(x.shape)
			twice[0] *= 2
			c := line(indent, name+"_c", "concatenate $, dim = 0", twice, x, x)
			vals = append(vals, c)
			return line(indent, name, fmt.Sprintf("slice $, start_indices = [1], limit_indices = [%d], dims = [0]", x.shape[0]+1), x.shape, c)
		}
		return line(indent, name, "neg $", x.shape, x)
	}
	for i := range n {
		if r.IntN(5) > 0 {
			vals = append(vals, statement("  ", fmt.Sprintf("%%v%d", i)))
			continue
		}
		before, outer := body.String(), slices.Clone(vals)
		body.Reset()
		for k := range 1 + r.IntN(3) {
			vals = append(vals, statement("    ", fmt.Sprintf("%%k%d_%d", i, k)))
		}
		last := vals[len(vals)-1]
		result := shaped{fmt.Sprintf("%%v%d", i), last.shape}
		inner := body.String()
		body.Reset()
		fmt.Fprintf(&body, "%s  %s = dm.kernel -> %s {\n%s    dm.yield %s : %s\n  }\n", before, result.name, last.typ(), inner, last.name, last.typ())
		vals = append(outer, result)
	}
	last := vals[len(vals)-1]
	return fmt.Sprintf("func.func @f(%s) -> (%s, %s) {\n%s  return %s, %s : %s, %s\n}\n",
		strings.Join(args, ", "), last.typ(), vals[len(vals)-2].typ(), body.String(), last.name, vals[len(vals)-2].name, last.typ(), vals[len(vals)-2].typ())
}

// Random programs agree with differences.
func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(80) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { against(t, smooth(seed, 14), nil) })
	}
}

// The gradient of a random program, whose loops all count to a number, is a program
// that runs, with results of the arguments' types.
func TestMessyPrograms(t *testing.T) {
	for seed := range uint64(120) {
		text := randprog.Messy(seed, 25)
		m := read(t, text)
		f := m.Func("f")
		g, err := gradient.Function(m, f, gradient.Options{Seeded: true, Joint: true})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		back, shown := printed(t, m, g)
		args := inputs(t, back.Funcs[0], seed, nil)
		outs := compute(t, back, back.Funcs[0], args)
		want := compute(t, m, f, args[:len(f.Args)])
		for i := range want {
			if d := tensor.MaxDiff(outs[i], want[i]); d != 0 {
				t.Fatalf("seed %d: result %d differs by %g\n%s\n%s", seed, i, d, text, shown)
			}
		}
		for i, x := range args[:len(f.Args)] {
			if y := outs[len(want)+i]; y.Elem != x.Elem || !slices.Equal(y.Shape, x.Shape) {
				t.Fatalf("seed %d: gradient %d is %s of %s", seed, i, y.Type(), x.Type())
			}
		}
	}
}
