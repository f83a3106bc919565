package main

import (
	"fmt"
	"strings"
)

// A form is a syntax for the same program.
type form struct {
	name string
	// op writes "name = op(a, c)" over tensors of type t, from line n of a model.
	op func(b *strings.Builder, name, op, a, c, t string, n int)
}

// generic is the form that both servers read: ops of about 160 bytes, known to dmir
// and unregistered for the peer. pretty has the same ops in pretty form,
// with a comment after each to make the lines as long; only dmir reads
// it.
var (
	generic = form{"generic", func(b *strings.Builder, name, op, a, c, t string, n int) {
		fmt.Fprintf(b, "  %s = \"dm.%s\"(%s, %s) : (%s, %s) -> %s loc(\"model/layer.py\":%d:17)", name, op, a, c, t, t, t, n)
	}}
	pretty = form{"pretty", func(b *strings.Builder, name, op, a, c, t string, n int) {
		fmt.Fprintf(b, "  %s = dm.%s %s, %s : %s loc(\"model/layer.py\":%d:17) // as written by the exporter of the graph", name, op, a, c, t, n)
	}}
)

var binary = []string{"add", "mul", "sub", "max", "min", "div"}

// program returns a text of n ops, perFunc in each function, in chains of 50 ops
// over tensors of eight types. Values, ops and positions differ from line to line.
func (f form) program(n, perFunc int) string {
	var types []string
	for _, d := range []int{512, 768, 1024, 1280, 2048, 3072, 4096, 5120} {
		types = append(types, fmt.Sprintf("tensor<8x%dx%dxf16>", d, d+1024))
	}
	var b strings.Builder
	b.Grow(n * 170)
	for i := 0; i < n; {
		fmt.Fprintf(&b, "func.func @layer_%d(", i/perFunc)
		for k, t := range types {
			fmt.Fprintf(&b, "%%x%d: %s, %%y%d: %s, ", k, t, k, t)
		}
		fmt.Fprintf(&b, "%%z: %s) -> %s {\n", types[0], types[0])
		last, result := "", "%z"
		for j := 0; j < perFunc && i < n; j++ {
			k := j / 50 % len(types)
			if j%50 == 0 {
				last = fmt.Sprintf("%%x%d", k)
			}
			name := fmt.Sprintf("%%value_%d", i)
			f.op(&b, name, binary[i%len(binary)], last, fmt.Sprintf("%%y%d", k), types[k], i+1)
			b.WriteByte('\n')
			if last = name; k == 0 {
				result = name
			}
			i++
		}
		fmt.Fprintf(&b, "  return %s : %s\n}\n", result, types[0])
	}
	return b.String()
}
