package types

import (
	"slices"
	"strconv"
	"strings"
)

// Sharding is how the pieces of a tensor lie on the devices of a mesh. An axis that
// it does not name holds copies.
type Sharding struct {
	Mesh    Symbol  // "pod" of dm.mesh @pod
	Dims    []Split // one for each dimension
	Partial []Axis  // the axes along which each device holds a part of a reduction
	Reduce  Reduction
}

// Split is the axes that a dimension is divided over, the outermost first: the index of
// a piece counts the devices of the last axis fastest.
type Split struct {
	Axes []Axis
	Open bool // propagation may add axes
}

// Axis is an axis of a mesh, or a part of one: n devices seen as
// Pre × Size × n/(Pre·Size), the outermost first, of which the part is the middle
// (Shardy's sub-axes, which are written the same way).
type Axis struct {
	Name string
	Pre  int64 // product of the sizes of the parts before it; 0: the whole axis
	Size int64 // 0: the whole axis
}

// Reduction is how the parts of a partial value give the value.
type Reduction string

// The reductions; Add is the default, "".
const (
	Add Reduction = ""
	Mul Reduction = "mul"
	Max Reduction = "max"
	Min Reduction = "min"
	And Reduction = "and"
	Or  Reduction = "or"
)

// Reductions are all of them, by the word in the text.
var Reductions = []string{"add", "mul", "max", "min", "and", "or"}

// Word is the reduction as written.
func (r Reduction) Word() string {
	if r == Add {
		return "add"
	}
	return string(r)
}

// ReductionOf is the reduction called word.
func ReductionOf(word string) (Reduction, bool) {
	if word == "add" {
		return Add, true
	}
	return Reduction(word), slices.Contains(Reductions, word)
}

func (a Axis) String() string {
	if a.Size == 0 {
		return a.Name
	}
	return a.Name + ":(" + strconv.FormatInt(a.Pre, 10) + ")" + strconv.FormatInt(a.Size, 10)
}

// AxisList is axes as written: {data, model}.
func AxisList(axes []Axis) string {
	s := make([]string, len(axes))
	for i, a := range axes {
		s[i] = a.String()
	}
	return "{" + strings.Join(s, ", ") + "}"
}

func (d Split) String() string {
	s := AxisList(d.Axes)
	switch {
	case !d.Open:
		return s
	case len(d.Axes) == 0:
		return "{?}"
	}
	return strings.TrimSuffix(s, "}") + ", ?}"
}

// Text is the sharding as the parts of a placement.
func (s *Sharding) Text() string {
	dims := make([]string, len(s.Dims))
	for i, d := range s.Dims {
		dims[i] = d.String()
	}
	text := "split = " + s.Mesh.String() + "[" + strings.Join(dims, ", ") + "]"
	if len(s.Partial) > 0 {
		text += ", partial = " + s.Reduce.Word() + AxisList(s.Partial)
	}
	return text
}

// Short is the sharding where there is little room: "{data}·{model}", "{data}·{} Σ{model}"; ""
// where nothing is divided.
func (s *Sharding) Short() string {
	parts := make([]string, len(s.Dims))
	divided := false
	for i, d := range s.Dims {
		divided = divided || len(d.Axes) > 0
		parts[i] = strings.ReplaceAll(AxisList(d.Axes), " ", "")
	}
	text := ""
	if divided {
		text = strings.Join(parts, "·")
	}
	if len(s.Partial) > 0 {
		sign := "Σ"
		if s.Reduce != Add {
			sign = s.Reduce.Word()
		}
		text = strings.TrimSpace(text + " " + sign + strings.ReplaceAll(AxisList(s.Partial), " ", ""))
	}
	return text
}

// Equal reports whether two shardings, either of which may be nil, are the same.
func (s *Sharding) Equal(t *Sharding) bool {
	if s == nil || t == nil {
		return s == t
	}
	return s == t || s.Mesh == t.Mesh && s.Reduce == t.Reduce && slices.Equal(s.Partial, t.Partial) &&
		slices.EqualFunc(s.Dims, t.Dims, func(a, b Split) bool { return a.Open == b.Open && slices.Equal(a.Axes, b.Axes) })
}

// Axes calls visit for each axis of s.
func (s *Sharding) Axes(visit func(Axis)) {
	for _, d := range s.Dims {
		for _, a := range d.Axes {
			visit(a)
		}
	}
	for _, a := range s.Partial {
		visit(a)
	}
}

// parseSplit parses what stands behind "split =": @pod[{data}, {}].
func parseSplit(text string) (*Sharding, error) {
	bad := func() error {
		return badPlacement("split needs a mesh and the axes of each dimension, such as @pod[{data}, {}], not %q", text)
	}
	name, list, ok := strings.Cut(text, "[")
	list, closed := strings.CutSuffix(list, "]")
	name = strings.TrimSpace(name)
	if !ok || !closed || len(name) < 2 || name[0] != '@' {
		return nil, bad()
	}
	s := &Sharding{Mesh: ParseSymbol(name)}
	if strings.TrimSpace(list) == "" {
		return s, nil
	}
	for _, d := range splitTop(list) {
		var split Split
		axes, ok := axisTexts(d)
		if !ok {
			return nil, bad()
		}
		for i, text := range axes {
			if text == "?" && i == len(axes)-1 {
				split.Open = true
				continue
			}
			a, err := ParseAxis(text)
			if err != nil {
				return nil, err
			}
			split.Axes = append(split.Axes, a)
		}
		s.Dims = append(s.Dims, split)
	}
	return s, nil
}

// parsePartial parses what stands behind "partial =": {model}, or max{model}.
func (s *Sharding) parsePartial(text string) error {
	word, list, ok := strings.Cut(text, "{")
	word = strings.TrimSpace(word)
	axes, ok2 := axisTexts("{" + list)
	if !ok || !ok2 || len(axes) == 0 {
		return badPlacement("partial needs axes, such as {model} or max{model}, not %q", text)
	}
	if word != "" {
		if s.Reduce, ok = ReductionOf(word); !ok {
			return badPlacement("%q is no reduction; they are %s", word, strings.Join(Reductions, ", "))
		}
	}
	for _, text := range axes {
		a, err := ParseAxis(text)
		if err != nil {
			return err
		}
		s.Partial = append(s.Partial, a)
	}
	return nil
}

// axisTexts are the texts between the commas of {…}.
func axisTexts(text string) ([]string, bool) {
	text = strings.TrimSpace(text)
	inner, ok := strings.CutPrefix(text, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !ok || !closed {
		return nil, false
	}
	if strings.TrimSpace(inner) == "" {
		return nil, true
	}
	parts := splitTop(inner)
	for i, p := range parts {
		parts[i] = strings.TrimSpace(p)
	}
	return parts, true
}

// ParseAxis parses an axis: data, or the part data:(2)4 of one. Errors are *Error.
func ParseAxis(text string) (Axis, error) {
	bad := func() (Axis, error) {
		return Axis{}, badPlacement("%q is no axis; write data, or data:(2)4 for the 4 parts behind the first 2", text)
	}
	name, part, sub := strings.Cut(text, ":")
	if !isBareID(name) {
		return bad()
	}
	a := Axis{Name: name}
	if !sub {
		return a, nil
	}
	pre, size, ok := strings.Cut(strings.TrimPrefix(part, "("), ")")
	var err, err2 error
	a.Pre, err = strconv.ParseInt(pre, 10, 32)
	a.Size, err2 = strconv.ParseInt(size, 10, 32)
	if !ok || !strings.HasPrefix(part, "(") || err != nil || err2 != nil || a.Pre < 1 || a.Size < 2 {
		return bad()
	}
	return a, nil
}

// CheckAxes reports an axis that stands in s twice, or parts of one that overlap, as far
// as that is known without the mesh.
func (s *Sharding) CheckAxes() error {
	var seen []Axis
	var err error
	s.Axes(func(a Axis) {
		for _, b := range seen {
			if a.Name == b.Name && a.overlaps(b) && err == nil {
				err = badPlacement("axis %s is used twice", a)
			}
		}
		seen = append(seen, a)
	})
	return err
}

// overlaps reports whether two parts of one axis have devices' digits in common.
func (a Axis) overlaps(b Axis) bool {
	if a.Size == 0 || b.Size == 0 {
		return true
	}
	return a.Pre < b.Pre*b.Size && b.Pre < a.Pre*a.Size
}
