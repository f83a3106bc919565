package native

import (
	"fmt"
	"path/filepath"
	"strings"

	"dmir/base/escape"
	"dmir/gpu/artifact"
)

// Header is a C header for p: the interface of its object, and the numbers of its
// inputs and outputs by their names.
func Header(p *artifact.Program) string {
	api, err := runtimeFiles.ReadFile("runtime/dmir.h")
	if err != nil {
		panic(err) // it is part of this program
	}
	var b strings.Builder
	fmt.Fprintf(&b, "// %s, compiled by dmir from %s.\n//\n", escape.Comment(p.Name), escape.Comment(filepath.Base(p.File)))
	prefix := strings.ToUpper(escape.Identifier(p.Name))
	taken := map[string]bool{}
	define := func(kind, name string, i int) string {
		macro := prefix + "_" + kind + "_" + strings.ToUpper(escape.Identifier(name))
		if taken[macro] {
			macro = fmt.Sprintf("%s_%d", macro, i)
		}
		taken[macro] = true
		return fmt.Sprintf("#define %s %d\n", macro, i)
	}
	var defines strings.Builder
	describe := func(what, name, elem string, v artifact.View, state string) {
		fmt.Fprintf(&b, "//   %s %s: %s%s%s\n", what, escape.Comment(name), escape.Comment(elem), dims(v), state)
	}
	for i, n := range p.Inputs {
		buf := &p.Buffers[n]
		describe("input", buf.Name, buf.Elem, artifact.View{Shape: buf.Shape, Order: buf.Order}, "")
		defines.WriteString(define("IN", buf.Name, i))
	}
	for i, n := range p.Outputs {
		state := ""
		if in := p.Carried(i); in >= 0 {
			state = ", the next value of " + escape.Comment(p.Buffers[p.Inputs[in]].Name)
		}
		describe("output", p.Result(i), p.Buffers[n].Elem, p.ResultView(i), state)
		defines.WriteString(define("OUT", p.Result(i), i))
	}
	return b.String() + "\n" + string(api) + "\n" + defines.String()
}

// dims are the sizes of a view, and its strides where it is not row-major.
func dims(v artifact.View) string {
	text := strings.Join(strings.Fields(fmt.Sprint(v.Shape)), ", ")
	if v.Order != nil {
		text += ", strides " + strings.Join(strings.Fields(fmt.Sprint(strides(v))), ", ")
	}
	return text
}
