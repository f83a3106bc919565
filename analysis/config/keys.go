package config

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"dmir/analysis/machine"
	"dmir/dialect/types"
)

// A node is what may stand at a place of dmir.toml, derived from the types that
// it is decoded into. The tag doc of a field documents its key; the tag names
// is "machine", "rule" or "element" where a value names one, or a table's keys do.
type node struct {
	name, doc, names string
	typ              reflect.Type
}

// root is the node of the whole file.
func root() node { return node{typ: reflect.TypeFor[text]()} }

func fieldNode(f reflect.StructField) node {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return node{f.Tag.Get("toml"), f.Tag.Get("doc"), f.Tag.Get("names"), t}
}

// table reports whether a node holds keys: those of children, or one's own.
func (n node) table() bool { return n.typ.Kind() == reflect.Struct || n.open() }

// open reports whether a table takes keys of any name.
func (n node) open() bool { return n.typ.Kind() == reflect.Map }

// entry is what a table of any keys holds under each.
func (n node) entry() node { return node{doc: n.doc, typ: n.typ.Elem()} }

// children are the keys of a table that takes only these.
func (n node) children() []node {
	var nodes []node
	if n.typ.Kind() == reflect.Struct {
		for i := range n.typ.NumField() {
			nodes = append(nodes, fieldNode(n.typ.Field(i)))
		}
	}
	return nodes
}

// at is the node at a path below n.
func (n node) at(path []string) (node, bool) {
	for _, key := range path {
		if n.open() {
			n = n.entry()
			n.name = key
			continue
		}
		nodes := n.children()
		i := slices.IndexFunc(nodes, func(c node) bool { return c.name == key })
		if i < 0 {
			return node{}, false
		}
		n = nodes[i]
	}
	return n, true
}

// keysAt is the keys that may stand in the table at the given path, nil where
// any may.
func keysAt(path []string) []string {
	n, ok := root().at(path)
	if !ok {
		return nil
	}
	var keys []string
	for _, c := range n.children() {
		keys = append(keys, c.name)
	}
	return keys
}

// A Choice is a name that may be written at a place, with what it stands for.
type Choice struct{ Name, Doc string }

// choices are the names that a node's values name, or its keys where it is a table.
func (n node) choices(rules []Choice) []Choice {
	var found []Choice
	switch n.names {
	case "machine":
		for _, m := range machine.All() {
			found = append(found, Choice{m.Name, m.Title})
		}
	case "rule":
		return rules
	case "element":
		for e := types.F64; e <= types.Index; e++ {
			found = append(found, Choice{e.String(), ""})
		}
	}
	slices.SortFunc(found, func(a, b Choice) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// kind is the form of a node's value in JSON Schema's words, and an example as TOML
// writes it.
func (n node) kind() (types []string, example string) {
	switch n.typ.Kind() {
	case reflect.Struct, reflect.Map:
		return []string{"object"}, ""
	case reflect.Slice:
		return []string{"array"}, "[]"
	case reflect.Bool:
		return []string{"boolean"}, "true"
	case reflect.String:
		return []string{"string"}, `""`
	}
	if unit := n.unit(); unit != "" { // a quantity
		return []string{"string"}, `"` + unit + `"`
	}
	if n.typ.Kind() == reflect.Float64 {
		return []string{"number"}, ""
	}
	return []string{"integer"}, ""
}

// unit is the unit of a quantity, with a prefix that is usual for it.
func (n node) unit() string {
	switch n.typ {
	case reflect.TypeFor[machine.Bytes]():
		return "GB"
	case reflect.TypeFor[machine.BytesPerSecond]():
		return "TB/s"
	case reflect.TypeFor[machine.FLOPRate]():
		return "TFLOP/s"
	case reflect.TypeFor[machine.Seconds]():
		return "ns"
	}
	return ""
}

// text is a node's documentation in Markdown.
func (n node) text(path string) string {
	b := "`" + path + "`"
	if kinds, _ := n.kind(); n.unit() != "" {
		b += ": a quantity in " + strings.TrimLeft(n.unit(), "GTn") + `, such as "4 ` + n.unit() + `"`
	} else if !n.table() {
		b += ": " + kinds[0]
	}
	if n.doc != "" {
		b += "\n\n" + n.doc + "."
	}
	return b
}
