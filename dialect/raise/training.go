package raise

import (
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/attention"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// Training finds the attention whose second contraction is o together with its gradient. That what stands between the gradient's
// contractions is the derivative of a softmax is decided by numbers: both are formulas of one element, which are computed
// for several drawn scores and cotangents, and compared with quotients of differences.
func Training(o *ir.Op) *attention.Attention { return attention.FindTraining(o, softmaxGradient) }

// Draws are made until so many rows without NaN have been compared, at most so many.
const (
	comparedRows = 4
	mostDraws    = 64
	drawnKeys    = 3

	step      = 1e-4 // of the quotient of differences
	tolerance = 1e-4 // relative to the largest of a row
)

func softmaxGradient(s *attention.Softmax) bool {
	if s.Key < 0 {
		return false
	}
	at := whole(s.DS.Tensor())
	r := newReader(s.Elem, []*ir.Value{s.Scores, s.DP})
	r.visits, r.softmax = -4*maxVisits, true // what a gradient has is longer than a composite
	ds, p := r.term(s.DS, at), r.term(s.P, s.AtP)
	if ds == nil || p == nil || len(ds.key) > maxKey {
		return false
	}
	dp, scores := r.leaf(s.DP, s.AtDP), r.leaf(s.Scores, s.AtScores)
	e := &drawnRow{leaves: map[string]*ir.Value{}, at: map[int]int{}, scores: scores.name, place: 1 + slices.Index(s.AtScores, s.Key)}
	for v, id := range r.ids {
		e.leaves[strconv.Itoa(id)] = v
	}
	compared := 0
	for e.draw = 0; e.draw < mostDraws && compared < comparedRows; e.draw++ {
		for _, a := range at {
			e.at[a] = 1
		}
		// each is the value of t for each key.
		each := func(t *term) (row [drawnKeys]float64) {
			for k := range drawnKeys {
				e.at[s.Key] = k
				row[k] = e.value(t)
			}
			return row
		}
		cotangents, got := each(dp), each(ds)
		var want [drawnKeys]float64
		size, known := 0.0, true
		for k := range drawnKeys {
			e.moved, e.by = k, step
			more := each(p)
			e.by = -step
			less := each(p)
			e.by = 0
			for i := range drawnKeys {
				want[k] += cotangents[i] * (more[i] - less[i]) / (2 * step)
			}
			size, known = max(size, math.Abs(want[k])), known && !math.IsNaN(want[k])
		}
		if e.failed {
			return false
		}
		if !known {
			continue // of a query that sees no key
		}
		for k := range drawnKeys {
			if !(math.Abs(got[k]-want[k]) <= tolerance*size) {
				return false
			}
		}
		if size > 0 {
			compared++
		}
	}
	return compared == comparedRows
}

// drawnRow gives numbers to the leaves of terms, at each index of their axes.
type drawnRow struct {
	draw   int
	leaves map[string]*ir.Value
	at     map[int]int // the index of each axis
	scores string      // the leaf of the scores; place is the word of it that is the key
	place  int
	moved  int     // the score of this key is more
	by     float64 // by so much
	failed bool    // there was a term of which no number is known
}

func (e *drawnRow) value(t *term) float64 {
	switch t.kind {
	case leaf:
		return e.leaf(t.name)
	case sum:
		v := t.num
		for _, a := range t.args {
			v += e.value(a)
		}
		return v
	case product:
		v := t.num
		for i, a := range t.args {
			v *= math.Pow(e.value(a), float64(t.exps[i])/2)
		}
		return v
	case guard:
		if e.value(t.args[0]) == 0 {
			return math.NaN()
		}
		return e.value(t.args[1])
	case reduction:
		return e.reduced(t)
	}
	return e.function(t)
}

// leaf is the number of a leaf "id,axis,axis…", or the index of the axis of an iota.
func (e *drawnRow) leaf(name string) float64 {
	words := strings.Split(name, ",")
	h := fnv.New64a()
	h.Write([]byte{byte(e.draw)})
	h.Write([]byte(words[0]))
	for _, w := range words[1:] {
		a, err := strconv.Atoi(w)
		if err != nil {
			e.failed = true
		}
		if words[0] == "iota" {
			return float64(e.at[a])
		}
		h.Write([]byte{',', byte(e.at[a])})
	}
	x := h.Sum64()
	x = (x ^ x>>31) * 0x9e3779b97f4a7c15
	if l := e.leaves[words[0]]; l != nil && !l.Elem().IsFloat() {
		if l.Op != nil && l.Op.Name == op.Constant {
			if n, is := attention.Literal(l.Op); is {
				return n
			}
		}
		if l.Elem() == types.I1 {
			return float64(x >> 63)
		}
		return float64(x >> 32 % drawnKeys) // an index, as masks compare them
	}
	v := float64(x>>11)/(1<<52) - 1
	if of, _, _ := strings.Cut(e.scores, ","); of == words[0] && e.by != 0 {
		if a, _ := strconv.Atoi(words[e.place]); e.at[a] == e.moved {
			v += e.by
		}
	}
	return v
}

// reduced is a reduction over some axes, each with drawnKeys elements.
func (e *drawnRow) reduced(t *term) float64 {
	kind, list, _ := strings.Cut(t.name, " ")
	var over []int
	for _, w := range strings.Fields(list) {
		axis, _, _ := strings.Cut(w, ":")
		a, err := strconv.Atoi(axis)
		if err != nil {
			e.failed = true
		}
		over = append(over, a)
	}
	total := 0.0
	if kind == "max" {
		total = math.Inf(-1)
	}
	var next func(n int)
	next = func(n int) {
		if n < len(over) {
			outer := e.at[over[n]] // around it, one may have the same name
			for k := range drawnKeys {
				e.at[over[n]] = k
				next(n + 1)
			}
			e.at[over[n]] = outer
			return
		}
		if v := e.value(t.args[0]); kind == "max" {
			total = max(total, v)
		} else {
			total += v
		}
	}
	if len(over) > 2 {
		e.failed = true
		return 0
	}
	next(0)
	return total
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (e *drawnRow) function(t *term) float64 {
	args := make([]float64, len(t.args))
	for i, a := range t.args {
		args[i] = e.value(a)
	}
	switch name, direction, _ := strings.Cut(t.name, " "); name {
	case "exp":
		return math.Exp(args[0])
	case "log":
		return math.Log(args[0])
	case "abs":
		return math.Abs(args[0])
	case "max":
		if len(args) == 2 {
			return max(args[0], args[1])
		}
	case "convert":
		return args[0]
	case "finite":
		if math.IsInf(args[0], 0) || math.IsNaN(args[0]) {
			return 0
		}
		return args[0]
	case "select":
		if args[0] != 0 {
			return args[1]
		}
		return args[2]
	case "and":
		return truth(args[0] != 0 && args[1] != 0)
	case "or":
		return truth(args[0] != 0 || args[1] != 0)
	case "not":
		return 1 - args[0]
	case "compare":
		switch direction {
		case "lt":
			return truth(args[0] < args[1])
		case "le":
			return truth(args[0] <= args[1])
		case "gt":
			return truth(args[0] > args[1])
		case "ge":
			return truth(args[0] >= args[1])
		case "eq":
			return truth(args[0] == args[1])
		case "ne":
			return truth(args[0] != args[1])
		}
	}
	e.failed = true
	return 0
}
