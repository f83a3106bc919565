package types

// TextOf is the text of a string or a keyword, or the name of a symbol; "" of
// anything else.
func TextOf(a Attr) string {
	switch a := a.(type) {
	case Str:
		return string(a)
	case Keyword:
		return string(a)
	case Symbol:
		name, _ := a.Name()
		return name
	}
	return ""
}

// TruthOf is the value of a boolean, true for a unit and false for anything else.
func TruthOf(a Attr) bool {
	switch a := a.(type) {
	case Bool:
		return bool(a)
	case Unit:
		return true
	}
	return false
}

// NumberOf is the value of a floating-point number or an integer; ok is false
// for anything else.
func NumberOf(a Attr) (v float64, ok bool) {
	switch a := a.(type) {
	case Float:
		return a.V, true
	case Int:
		return float64(a.V), true
	}
	return 0, false
}

// IntegersOf is a list of integers ([1, 0], array<i64: 1, 0> or dense<…>): empty
// but not nil for [], nil for anything else.
func IntegersOf(a Attr) []int64 {
	switch a := a.(type) {
	case Array:
		out := make([]int64, len(a))
		for i, e := range a {
			n, ok := e.(Int)
			if !ok {
				return nil
			}
			out[i] = n.V
		}
		return out
	case *ArrayOf:
		if a.Elem.IsInt() {
			return a.Ints()
		}
	case *Dense:
		return a.Spread()
	}
	return nil
}
