package interp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// Random equations of one to three operands, diagonals and sums in one operand
// included, against the definition: one loop over all letters.
func TestEinsumAgainstDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	elems := []types.Elem{types.F64, types.F32, types.I32}
	for range 400 {
		size := map[byte]int{}
		for _, l := range []byte("abcde") {
			size[l] = 1 + r.IntN(3)
		}
		inputs := make([]string, 1+r.IntN(3))
		all := ""
		for i := range inputs {
			for range r.IntN(4) {
				inputs[i] += string("abcde"[r.IntN(5)])
			}
			all += inputs[i]
		}
		output := ""
		for _, l := range "abcde" {
			if strings.ContainsRune(all, l) && r.IntN(2) == 0 {
				output += string(l)
			}
		}
		shuffled := []byte(output)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		output = string(shuffled)

		elem := elems[r.IntN(len(elems))]
		shapeOf := func(letters string) []int {
			s := []int{}
			for i := range len(letters) {
				s = append(s, size[letters[i]])
			}
			return s
		}
		args := make([]*tensor.Tensor, len(inputs))
		var names, kinds []string
		for i, in := range inputs {
			args[i] = tensor.Random(elem, shapeOf(in), 1, uint64(r.IntN(1000)))
			names = append(names, fmt.Sprintf("%%x%d", i))
			kinds = append(kinds, args[i].Type())
		}
		want := tensor.New(elem, shapeOf(output)...)
		at := map[byte]int{}
		var loop func(letters string)
		offset := func(letters string) int {
			o := 0
			for i := range len(letters) {
				o = o*size[letters[i]] + at[letters[i]]
			}
			return o
		}
		loop = func(letters string) {
			if letters == "" {
				p := 1.0
				for i, in := range inputs {
					p *= args[i].Float(offset(in))
				}
				want.SetFloat(offset(output), want.Float(offset(output))+p)
				return
			}
			for i := range size[letters[0]] {
				at[letters[0]] = i
				loop(letters[1:])
			}
		}
		used := ""
		for _, l := range "abcde" {
			if strings.ContainsRune(all, l) {
				used += string(l)
			}
		}
		loop(used)

		params := make([]string, len(args))
		for i := range args {
			params[i] = names[i] + ": " + kinds[i]
		}
		equation := strings.Join(inputs, ",") + "->" + output
		got := run(t, fmt.Sprintf("func.func @f(%s) -> %s {\n  %%y = dm.einsum %q %s : (%s) -> %s\n  return %%y : %s\n}",
			strings.Join(params, ", "), want.Type(), equation, strings.Join(names, ", "), strings.Join(kinds, ", "), want.Type(), want.Type()), args...)
		if diff := tensor.MaxDiff(got[0], want); diff > 1e-4 {
			t.Fatalf("%s in %s is off by %g: got %v, want %v", equation, elem, diff, got[0], want)
		}
	}
}
