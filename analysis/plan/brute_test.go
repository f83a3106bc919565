package plan

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/plan/solve"
	"dmir/analysis/program"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

// smallProgram is a step of n ops on matrices of 64 rows.
func smallProgram(r *rand.Rand, n int) string {
	var b strings.Builder
	b.WriteString("func.func @f(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>, %v: tensor<64x64xf32>, %c: tensor<64xf32>) -> tensor<64x64xf32> {\n")
	have := []string{"%x", "%w", "%v"}
	pick := func() string { return have[r.IntN(len(have))] }
	for i := range n {
		out := fmt.Sprintf("%%%d", i)
		last := have[len(have)-1] // each op uses what was made last
		if i == 0 {
			last = "%x"
		}
		switch r.IntN(6) {
		case 0, 1:
			fmt.Fprintf(&b, "  %s = dm.matmul %s, %s : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>\n", out, last, pick())
		case 2:
			fmt.Fprintf(&b, "  %s = dm.relu %s : tensor<64x64xf32>\n", out, last)
		case 3:
			fmt.Fprintf(&b, "  %s = dm.add %s, %s : tensor<64x64xf32>\n", out, last, pick())
		case 4:
			fmt.Fprintf(&b, "  %s = dm.softmax %s : tensor<64x64xf32>\n", out, last)
		default:
			fmt.Fprintf(&b, "  %s = dm.mul %s, %%c : (tensor<64x64xf32>, tensor<64xf32>) -> tensor<64x64xf32>\n", out, last)
		}
		have = append(have, out)
	}
	fmt.Fprintf(&b, "  return %s : tensor<64x64xf32>\n}\n", have[len(have)-1])
	return b.String()
}

// exhaustive is the least value of a problem by trying everything: choices of the variables in their order, as
// long as what is known to be spent is below the best found so far. All costs are positive.
func exhaustive(p *solve.Problem) float64 {
	n := len(p.Unary)
	choice := make([]int, n)
	back := make([][]int, n) // edges to earlier variables
	for e, k := range p.Edges {
		back[max(k.U, k.V)] = append(back[max(k.U, k.V)], e)
	}
	best := math.Inf(1)
	var try func(v int, spent float64)
	try = func(v int, spent float64) {
		if spent >= best {
			return
		}
		if v == n {
			best = min(best, p.Value(choice))
			return
		}
		for c := range p.Unary[v] {
			choice[v] = c
			more := p.Unary[v][c]
			for _, e := range back[v] {
				k := &p.Edges[e]
				more += k.Cost[choice[k.U]*len(p.Unary[k.V])+choice[k.V]]
			}
			try(v+1, spent+more)
		}
	}
	try(0, 0)
	return best
}

// The search finds the best plan of all small programs on 4 and on 2×2 devices.
func TestSmallProgramsExhaustively(t *testing.T) {
	cluster, _ := machine.Lookup("dgx-h100")
	need.Long(t)
	for seed := range 24 {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		text := smallProgram(r, 1+seed%6)
		p := program.Load(source.New("small.dmir", text), program.Options{})
		if p.HasErrors() {
			t.Fatalf("%v\n%s", p.Diags, text)
		}
		m := p.Modules[0]
		for _, axes := range [][]Axis{{{"data", 4}, {"tensor", 1}}, {{"data", 2}, {"tensor", 2}}} {
			s, err := newSearch(m, m.Funcs[0], Options{Machine: cluster, Devices: 4})
			if err != nil {
				t.Fatal(err)
			}
			for _, memory := range []float64{math.Inf(1), 40e3} {
				set := setting{axes: axes, pipe: 1, micro: 1, recompute: None}
				gr, err := s.grid(set)
				if err != nil {
					t.Fatal(err)
				}
				problem := newModel(s.graph, gr, s.bandwidth).problem(load{pipe: 1, recompute: None, inflight: 1, memory: memory})
				sol, err := solve.Solve(context.Background(), problem, solve.Options{})
				if err != nil {
					t.Fatal(err)
				}
				want := exhaustive(problem)
				if least := s.graph.apart(gr, s.free(set), s.bandwidth); least > want || least == 0 {
					t.Errorf("%v: ops take %.9g by themselves, together %.9g\n%s", axes, least, want, text)
				}
				if math.Abs(sol.Value-want) > 1e-9*want && !(math.IsInf(want, 1) && sol.Choice == nil) {
					t.Errorf("%v, memory %v: %.9g, the best is %.9g (%s)\n%s", axes, memory, sol.Value, want, sol.Method, text)
				}
			}
		}
	}
}
