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
	// Batch is the letters that an ellipsis stands for. A dimension of one of them
	// that has size 1 broadcasts.
	Batch string
}

// EquationOf is the equation of o, an einsum or a matmul, with a letter for each dimension
// that an ellipsis stands for; a matmul's batch is one.
func EquationOf(o *ir.Op) (*Equation, error) {
	text := strings.ReplaceAll(Str(o, "equation"), " ", "")
	if o.Name == Prefix+"matmul" {
		sides := []string{"...mk", "...kn"}
		if Bool(o, "transpose_a") {
			sides[0] = "...km"
		}
		if Bool(o, "transpose_b") {
			sides[1] = "...nk"
		}
		text = strings.Join(sides, ",") + "->...mn"
	}
	ranks := make([]int, len(o.Operands))
	for i := range ranks {
		ranks[i] = in(o, i).Rank()
	}
	left, output, ok := strings.Cut(text, "->")
	inputs := strings.Split(left, ",")
	if !ok || !strings.Contains(text, ellipsis) || len(inputs) != len(ranks) {
		return ParseEquation(text, len(ranks))
	}
	most := 0
	for i, term := range inputs {
		if n := strings.Count(term, "."); n != 0 && (n != 3 || !strings.Contains(term, ellipsis)) {
			return ParseEquation(text, len(ranks)) // which states it
		}
		if named := len(strings.Replace(term, ellipsis, "", 1)); strings.Contains(term, ellipsis) {
			if named > ranks[i] {
				return nil, fmt.Errorf("input %q names %s, but operand %d has %d", term, diag.Count(named, "dimension"), i, ranks[i])
			}
			most = max(most, ranks[i]-named)
		}
	}
	if most > 0 && !strings.Contains(output, ellipsis) {
		return nil, fmt.Errorf(`the output lacks the dimensions that "..." stands for; write "..." in it`)
	}
	batch := ""
	for _, r := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		if len(batch) < most && !strings.ContainsRune(text, r) {
			batch += string(r)
		}
	}
	if len(batch) < most {
		return nil, fmt.Errorf("there are more dimensions than letters")
	}
	for i, term := range inputs {
		own := max(ranks[i]-len(strings.Replace(term, ellipsis, "", 1)), 0)
		inputs[i] = strings.Replace(term, ellipsis, batch[most-min(own, most):], 1)
	}
	e, err := ParseEquation(strings.Join(inputs, ",")+"->"+strings.Replace(output, ellipsis, batch, 1), len(ranks))
	if e != nil {
		e.Batch = batch
	}
	return e, err
}

// ellipsis stands for the dimensions that have no letter.
const ellipsis = "..."

// Without is the letters of input i, of a shape of which broadcast reports the
// dimensions of size 1 that are repeated, but for these, and the dimensions that are
// left.
func (e *Equation) Without(i int, broadcast func(d int) bool) (letters string, dims []int) {
	for d := range len(e.Inputs[i]) {
		if c := e.Inputs[i][d]; strings.IndexByte(e.Batch, c) < 0 || !broadcast(d) {
			letters, dims = letters+string(c), append(dims, d)
		}
	}
	return letters, dims
}

// Plain is e without the dimensions that broadcast, and which dimensions of each
// operand are left, from the operands' shapes and the sizes of the letters.
func (e *Equation) Plain(shapes [][]dim.Dim, sizes map[byte]dim.Dim) (*Equation, [][]int) {
	kept := make([][]int, len(e.Inputs))
	p := &Equation{Inputs: make([]string, len(e.Inputs)), Output: e.Output, Letters: e.Letters}
	for i, letters := range e.Inputs {
		p.Inputs[i], kept[i] = e.Without(i, func(d int) bool { return isOne(shapes[i][d]) && !isOne(sizes[letters[d]]) })
	}
	return p, kept
}

// PlainEquation is the equation of o, a valid einsum, without the dimensions that
// broadcast, and which dimensions of each operand are left.
func PlainEquation(o *ir.Op) (*Equation, [][]int) {
	e, sizes, p := equationOf(o)
	if p != nil {
		return nil, nil
	}
	return e.Plain(operandShapes(o), sizes)
}

func operandShapes(o *ir.Op) [][]dim.Dim {
	shapes := make([][]dim.Dim, len(o.Operands))
	for i := range o.Operands {
		shapes[i] = in(o, i).Shape
	}
	return shapes
}

// ParseEquation parses "bln,nu->blu" for n operands; n < 0 takes any number.
// Spaces are ignored. Errors state what is wrong and what to write.
func ParseEquation(s string, n int) (*Equation, error) {
	e, err := parseEquation(s, n)
	if err == nil {
		for _, r := range e.Output {
			if !strings.ContainsRune(strings.Join(e.Inputs, ""), r) {
				return nil, fmt.Errorf("the output's %q is in no input", r)
			}
		}
	}
	return e, err
}

// parseEquation is ParseEquation of an equation whose output may have letters that no input has.
func parseEquation(s string, n int) (*Equation, error) {
	text := strings.ReplaceAll(s, " ", "")
	left, output, ok := strings.Cut(text, "->")
	if !ok {
		return nil, fmt.Errorf(`the output is missing; write it after "->", as in "ij,jk->ik"`)
	}
	e := &Equation{Inputs: strings.Split(left, ","), Output: output}
	if n >= 0 && len(e.Inputs) != n {
		return nil, fmt.Errorf("the equation has %s, the op %s", diag.Count(len(e.Inputs), "input"), diag.Count(n, "operand"))
	}
	if strings.Contains(text, ".") {
		return nil, fmt.Errorf(`an ellipsis is three dots, "...", at most once in a term, and in an input if it is in the output`)
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
			case !seen, strings.IndexByte(e.Batch, c) >= 0 && isOne(old):
				sizes[c], where[c] = d, i
			case strings.IndexByte(e.Batch, c) >= 0 && isOne(d):
			case strings.IndexByte(e.Batch, c) >= 0 && !sameDim(old, d):
				return nil, fmt.Errorf(`"..." stands for sizes %s and %s, which do not broadcast, in operand %d, of shape %s, and operand %d, of shape %s`,
					dimText(old), dimText(d), where[c], shapeText(shapes[where[c]]), i, shapeText(shapes[i]))
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
	e, err := EquationOf(o)
	if err != nil {
		return nil, nil, attrProblem("DM120", "equation", "equation %q: %s", Str(o, "equation"), err)
	}
	sizes, err := e.Sizes(operandShapes(o))
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
	plain, _ := e.Plain(operandShapes(o), sizes)
	for i, letters := range plain.Inputs {
		read[i] = in(o, i).Elem.Size(sizeOf(letters, sizes))
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
	_, kept := e.Plain(operandShapes(o), sizes)
	for i, letters := range e.Inputs {
		all := positions(letters)
		own := make([]int, len(all))
		for d := range own {
			own[d] = -1
		}
		for _, d := range kept[i] {
			own[d] = all[d]
		}
		it.Operands = append(it.Operands, own)
	}
	it.Results = [][]int{positions(e.Output)}
	return it
}
