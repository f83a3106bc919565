package config

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// forms reports the values of a dmir.toml that have another form than their keys take, each at its place; of a
// text that is not TOML, and of keys that there are not, the decoder knows.
func forms(src *source.File) []diag.Diagnostic {
	f := &former{src: src}
	f.p.Reset([]byte(src.Text()))
	at := root()
	known := true
	path := []string(nil)
	for f.p.NextExpression() {
		switch e := f.p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			path = nil
			var key source.Span
			at, path, key, known = f.below(root(), nil, e.Key())
			if known && (!at.table() || e.Kind == unstable.ArrayTable) {
				f.report(key, path, "a list of tables", at)
				known = false
			}
		case unstable.KeyValue:
			if known {
				f.entry(at, path, e)
			}
		}
	}
	if f.p.Error() != nil {
		return nil
	}
	return f.diags
}

type former struct {
	src   *source.File
	p     unstable.Parser
	diags []diag.Diagnostic
}

// below is the node at keys below n, its path, and where the last key stands; ok is false where there is none, or where a key
// that holds no others has been reported.
func (f *former) below(n node, path []string, keys unstable.Iterator) (_ node, _ []string, last source.Span, ok bool) {
	path = path[:len(path):len(path)]
	for keys.Next() {
		k := keys.Node()
		if !n.table() {
			f.report(last, path, "a table", n)
			return n, path, last, false
		}
		name := string(k.Data)
		path, last = append(path, name), f.span(k)
		if n, ok = n.at([]string{name}); !ok {
			return n, path, last, false
		}
	}
	return n, path, last, true
}

// entry checks a key and its value in the table n.
func (f *former) entry(n node, path []string, e *unstable.Node) {
	n, path, key, ok := f.below(n, path, e.Key())
	if !ok {
		return
	}
	v := e.Value()
	at := f.span(v)
	if v.Raw.Length == 0 { // a list or a table: what stands behind the key
		at = source.Span{Start: key.End, End: int(e.Raw.Offset + e.Raw.Length)}
		text := f.src.Slice(at)
		at.Start += len(text) - len(strings.TrimLeft(text, " \t=\"'"))
	}
	f.value(n, path, v, at)
}

func (f *former) value(n node, path []string, v *unstable.Node, at source.Span) {
	kinds, _ := n.kind()
	wants := map[string][]unstable.Kind{
		"object": {unstable.InlineTable}, "array": {unstable.Array}, "boolean": {unstable.Bool},
		"string": {unstable.String}, "integer": {unstable.Integer}, "number": {unstable.Integer, unstable.Float},
	}[kinds[0]]
	fits := false
	for _, k := range wants {
		fits = fits || v.Kind == k
	}
	quantity, _ := reflect.New(n.typ).Interface().(encoding.TextUnmarshaler)
	switch {
	case quantity != nil && (fits || v.Kind == unstable.Integer || v.Kind == unstable.Float):
		if err := quantity.UnmarshalText(v.Data); err != nil || !fits {
			if err == nil {
				err = fmt.Errorf("it is written in quotes, with its unit")
			}
			f.diags = append(f.diags, problem("DM902", at, strings.Join(path, ".")+": "+err.Error()))
		}
	case !fits:
		f.report(at, path, words[v.Kind], n)
	case v.Kind == unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			f.entry(n, path, it.Node())
		}
	case v.Kind == unstable.Array:
		for it := v.Children(); it.Next(); {
			if e := it.Node(); e.Kind != unstable.String {
				f.report(f.span(e), path, "a list with "+words[e.Kind], n)
				return
			}
		}
	}
}

// words are what values are called in messages.
var words = map[unstable.Kind]string{
	unstable.Array: "a list", unstable.InlineTable: "a table", unstable.String: "a text in quotes", unstable.Bool: "true or false",
	unstable.Float: "a number with a point", unstable.Integer: "an integer", unstable.LocalDate: "a date", unstable.LocalTime: "a time of day",
	unstable.LocalDateTime: "a date", unstable.DateTime: "a date",
}

// report reports that a key has a value that is found, and n takes another.
func (f *former) report(at source.Span, path []string, found string, n node) {
	key := strings.Join(path, ".")
	d := problem("DM902", at, fmt.Sprintf("%s is %s; %s", shown(key), found, n.wanted()))
	last := path[len(path)-1]
	switch kinds, _ := n.kind(); {
	case n.unit() != "":
		d.Help = "write " + last + ` = "4 ` + n.unit() + `"`
	case kinds[0] == "object":
		d.Help = "write [" + key + "], and its keys below it"
	case kinds[0] == "array":
		d.Help = "write " + last + ` = ["DM201"]`
	case kinds[0] == "boolean":
		d.Help = "write " + last + " = true"
	case kinds[0] == "string":
		d.Help = "write " + last + ` = "…"`
	default:
		d.Help = "write " + last + " = 1"
	}
	f.diags = append(f.diags, d)
}

// wanted is what the key of n takes, as a clause.
func (n node) wanted() string {
	switch kinds, _ := n.kind(); {
	case n.unit() != "":
		return "it is a quantity in quotes, with its unit"
	case kinds[0] == "object":
		return "it is a table"
	case kinds[0] == "array":
		return "it is a list of texts in quotes"
	case kinds[0] == "boolean":
		return "it is true or false"
	case kinds[0] == "string":
		return "it is a text in quotes"
	case kinds[0] == "number":
		return "it is a number"
	}
	return "it is an integer"
}

// span is where a scalar or a key stands; quotes are part of it.
func (f *former) span(n *unstable.Node) source.Span {
	return source.Span{Start: int(n.Raw.Offset), End: int(n.Raw.Offset + n.Raw.Length)}
}
