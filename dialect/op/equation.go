package op

import (
	"fmt"
	"slices"
	"strings"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// Equation is a parsed Einstein summation: one letter for each dimension.
// Letters that Output lacks are summed over.
type Equation struct {
	Inputs  []string // the letters of each operand, in the order of its dimensions; a repeated letter takes the diagonal
	Output  string   // no letter twice
	Letters string   // every letter once, those of Output first, then in order of appearance: the loops
}

// ParseEquation parses "bln,nu->blu" for n operands; n < 0 takes any number.
// Spaces are ignored. Errors state what is wrong and what to write.
func ParseEquation(s string, n int) (*Equation, error) {
	text := strings.ReplaceAll(s, " ", "")
	if strings.Contains(text, ".") {
		return nil, fmt.Errorf("ellipsis is not supported; give every dimension a letter")
	}
	left, output, ok := strings.Cut(text, "->")
	if !ok {
		return nil, fmt.Errorf(`the output is missing; write it after "->", as in "ij,jk->ik"`)
	}
	e := &Equation{Inputs: strings.Split(left, ","), Output: output}
	if n >= 0 && len(e.Inputs) != n {
		return nil, fmt.Errorf("the equation has %s, the op %s", diag.Count(len(e.Inputs), "input"), diag.Count(n, "operand"))
	}
	for _, r := range strings.Join(e.Inputs, "") + output {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return nil, fmt.Errorf("%q is not a letter; dimensions are named a to z and A to Z", r)
		}
	}
	for i, r := range output {
		if strings.IndexRune(output, r) != i {
			return nil, fmt.Errorf("the output names %q twice; a diagonal can be read but not written", r)
		}
		if !strings.ContainsRune(left, r) {
			return nil, fmt.Errorf("the output's %q is in no input", r)
		}
	}
	e.Letters = output
	for _, in := range e.Inputs {
		for _, r := range in {
			if !strings.ContainsRune(e.Letters, r) {
				e.Letters += string(r)
			}
		}
	}
	return e, nil
}

// String is the equation as text, without spaces.
func (e *Equation) String() string { return strings.Join(e.Inputs, ",") + "->" + e.Output }

// Sizes gives every letter of e its size from the operands' shapes. The error
// names the letter and the shapes that disagree.
func (e *Equation) Sizes(shapes [][]dim.Dim) (map[byte]dim.Dim, error) {
	sizes, where := map[byte]dim.Dim{}, map[byte]int{}
	for i, letters := range e.Inputs {
		if i >= len(shapes) {
			return nil, fmt.Errorf("operand %d is missing", i)
		}
		if len(letters) != len(shapes[i]) {
			return nil, fmt.Errorf("input %q names %s, but operand %d has shape %s", letters, diag.Count(len(letters), "dimension"), i, shapeText(shapes[i]))
		}
		for j := range len(letters) {
			c, d := letters[j], shapes[i][j]
			old, seen := sizes[c]
			switch {
			case !seen:
				sizes[c], where[c] = d, i
			case !sameDim(old, d):
				return nil, fmt.Errorf("%q is %s in operand %d, of shape %s, and %s in operand %d, of shape %s",
					c, dimText(old), where[c], shapeText(shapes[where[c]]), dimText(d), i, shapeText(shapes[i]))
			default:
				sizes[c] = known(old, d)
			}
		}
	}
	return sizes, nil
}

// Contracted reports whether letter c is summed over.
func (e *Equation) Contracted(c byte) bool { return strings.IndexByte(e.Output, c) < 0 }

// Diagonal reports whether an input repeats a letter.
func (e *Equation) Diagonal() bool { return slices.ContainsFunc(e.Inputs, repeats) }

func repeats(letters string) bool {
	for i := range len(letters) {
		if strings.IndexByte(letters, letters[i]) != i {
			return true
		}
	}
	return false
}

// Step is one pairwise contraction: the letters of the two sides and those kept.
type Step struct{ Left, Right, Out string }

// Steps contracts the operands pairwise from left to right. Each result keeps,
// in order of appearance, the letters that later operands or the output need;
// the last one's Out is Output. There is none for a single operand.
func (e *Equation) Steps() []Step {
	var last [128]int // the last input that has the letter
	for i, letters := range e.Inputs {
		for _, r := range letters {
			last[r] = i
		}
	}
	var steps []Step
	left := e.Inputs[0]
	for i := 1; i < len(e.Inputs); i++ {
		s := Step{Left: left, Right: e.Inputs[i], Out: e.Output}
		if i+1 < len(e.Inputs) {
			s.Out = ""
			for _, r := range left + e.Inputs[i] {
				if (last[r] > i || strings.ContainsRune(e.Output, r)) && !strings.ContainsRune(s.Out, r) {
					s.Out += string(r)
				}
			}
		}
		steps = append(steps, s)
		left = s.Out
	}
	return steps
}

// equationOf is o's parsed equation and the sizes of its letters.
func equationOf(o *ir.Op) (*Equation, map[byte]dim.Dim, *Problem) {
	e, err := ParseEquation(Str(o, "equation"), len(o.Operands))
	if err != nil {
		return nil, nil, attrProblem("DM120", "equation", "equation %q: %s", Str(o, "equation"), err)
	}
	shapes := make([][]dim.Dim, len(o.Operands))
	for i := range o.Operands {
		shapes[i] = in(o, i).Shape
	}
	sizes, err := e.Sizes(shapes)
	if err != nil {
		return nil, nil, attrProblem("DM121", "equation", "equation %q: %s", Str(o, "equation"), err).
			help("one letter for each dimension, and one size for each letter")
	}
	return e, sizes, nil
}

func sizeOf(letters string, sizes map[byte]dim.Dim) dim.Dim {
	n := dim.Const(1)
	for i := range len(letters) {
		if strings.IndexByte(letters, letters[i]) == i {
			n = n.Mul(sizes[letters[i]])
		}
	}
	return n
}

func inferEinsum(o *ir.Op) ([]types.Type, *Problem) {
	if len(o.Operands) == 0 {
		return nil, problem("DM124", -1, "einsum needs at least one operand")
	}
	if p := contractionElems(o, 0, len(o.Operands)); p != nil {
		return nil, p
	}
	e, sizes, p := equationOf(o)
	if p != nil {
		return nil, p
	}
	shape := make([]dim.Dim, len(e.Output))
	for i := range shape {
		shape[i] = sizes[e.Output[i]]
	}
	elem, p := accumulated(o)
	if p != nil {
		return nil, p
	}
	return one(tensor(in(o, 0), elem, shape...)), nil
}

func flopEinsum(o *ir.Op) dim.Dim {
	if !in(o, 0).Elem.IsFloat() {
		return dim.Dim{}
	}
	e, sizes, p := equationOf(o)
	if p != nil {
		return dim.Dim{}
	}
	all := sizeOf(e.Letters, sizes)
	if len(e.Inputs) == 1 {
		return all.Sub(sizeOf(e.Output, sizes))
	}
	var sum dim.Dim
	for _, s := range e.Steps() {
		n := sizeOf(s.Left+s.Right, sizes)
		if len(s.Out) < distinct(s.Left+s.Right) {
			n = n.Scale(2)
		}
		sum = sum.Add(n)
	}
	return sum
}

func distinct(letters string) int {
	n := 0
	for i := range len(letters) {
		if strings.IndexByte(letters, letters[i]) == i {
			n++
		}
	}
	return n
}

// trafficEinsum reads only the diagonal of an operand that repeats a letter.
func trafficEinsum(o *ir.Op) (read []dim.Dim, written dim.Dim) {
	read, written = wholeTraffic(o)
	e, sizes, p := equationOf(o)
	if p != nil || !e.Diagonal() {
		return read, written
	}
	for i, letters := range e.Inputs {
		read[i] = sizeOf(letters, sizes).Scale(in(o, i).Elem.Bytes())
	}
	return read, written
}

func mapsEinsum(o *ir.Op) *Iteration {
	e, sizes, p := equationOf(o)
	if p != nil {
		return nil
	}
	it := &Iteration{}
	for i := range len(e.Letters) {
		c := e.Letters[i]
		it.Loops = append(it.Loops, sizes[c])
		it.Names = append(it.Names, string(c))
		it.Reduces = append(it.Reduces, e.Contracted(c))
	}
	positions := func(letters string) []int {
		m := make([]int, len(letters))
		for i := range m {
			m[i] = strings.IndexByte(e.Letters, letters[i])
		}
		return m
	}
	for _, letters := range e.Inputs {
		it.Operands = append(it.Operands, positions(letters))
	}
	it.Results = [][]int{positions(e.Output)}
	return it
}
