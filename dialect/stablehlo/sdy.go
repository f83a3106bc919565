package stablehlo

import (
	"fmt"
	"strconv"
	"strings"

	"dmir/syntax/parse"
)

// sdyAxis is an axis as Shardy writes it: "x", or the part "x":(2)4 of one.
type sdyAxis struct {
	name      string
	pre, size int64 // 0: the whole axis
}

// sdySharding is what stands in #sdy.sharding<…>. Priorities and the list replicated are
// read and not kept: the first order propagation, and the second keeps it from axes.
type sdySharding struct {
	mesh      string
	dims      []sdyDim
	unreduced []sdyAxis
}

type sdyDim struct {
	axes []sdyAxis
	open bool
}

// sdyMesh is what stands in #sdy.mesh<…>.
type sdyMesh struct {
	axes  []string
	sizes []int64
	ids   []int64 // of the devices; nil: in their order
}

// sdyReader reads the attributes of Shardy's dialect, whose lists are unlike those of other
// attributes.
type sdyReader struct {
	text string
	at   int
}

type sdyError struct{ msg string }

func (e sdyError) Error() string { return e.msg }

// sdyRead calls read on text and returns what it could not read.
func sdyRead(text string, read func(r *sdyReader)) (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case sdyError:
			err = e
		default:
			panic(e)
		}
	}()
	r := &sdyReader{text: text}
	read(r)
	if r.space(); r.at < len(text) {
		r.fail("the end")
	}
	return nil
}

func (r *sdyReader) fail(want string) {
	rest := strings.TrimSpace(r.text[r.at:])
	if len(rest) > 20 {
		rest = rest[:20] + "…"
	}
	panic(sdyError{fmt.Sprintf("expected %s at %q", want, rest)})
}

func (r *sdyReader) space() {
	for r.at < len(r.text) && strings.IndexByte(" \t\n\r", r.text[r.at]) >= 0 {
		r.at++
	}
}

// has passes over word if it comes next.
func (r *sdyReader) has(word string) bool {
	r.space()
	if !strings.HasPrefix(r.text[r.at:], word) {
		return false
	}
	r.at += len(word)
	return true
}

func (r *sdyReader) want(word string) {
	if !r.has(word) {
		r.fail(word)
	}
}

// list reads open, items between commas, and end.
func (r *sdyReader) list(open, end string, item func()) {
	r.want(open)
	for n := 0; !r.has(end); n++ {
		if n > 0 {
			r.want(",")
		}
		item()
	}
}

func (r *sdyReader) number() int64 {
	r.space()
	from := r.at
	for r.at < len(r.text) && r.text[r.at] >= '0' && r.text[r.at] <= '9' {
		r.at++
	}
	n, err := strconv.ParseInt(r.text[from:r.at], 10, 32)
	if err != nil {
		r.at = from
		r.fail("a number")
	}
	return n
}

// quoted reads a string.
func (r *sdyReader) quoted() string {
	r.space()
	for end := r.at + 1; r.at < len(r.text) && r.text[r.at] == '"' && end < len(r.text); end++ {
		switch r.text[end] {
		case '\\':
			end++
		case '"':
			s := parse.Unquote(r.text[r.at : end+1])
			r.at = end + 1
			return s
		}
	}
	r.fail("a name in quotes")
	return ""
}

// symbol reads a name behind "@".
func (r *sdyReader) symbol() string {
	r.want("@")
	if r.at < len(r.text) && r.text[r.at] == '"' {
		return r.quoted()
	}
	from := r.at
	for r.at < len(r.text) && (r.text[r.at] == '_' || r.text[r.at] == '$' || r.text[r.at] == '.' || r.text[r.at] == '-' ||
		r.text[r.at] >= '0' && r.text[r.at] <= '9' || r.text[r.at]|0x20 >= 'a' && r.text[r.at]|0x20 <= 'z') {
		r.at++
	}
	if from == r.at {
		r.fail("a name")
	}
	return r.text[from:r.at]
}

func (r *sdyReader) axis() sdyAxis {
	a := sdyAxis{name: r.quoted()}
	if r.has(":") {
		r.want("(")
		a.pre = r.number()
		r.want(")")
		a.size = r.number()
	}
	return a
}

func (r *sdyReader) axes() (out []sdyAxis) {
	r.list("{", "}", func() { out = append(out, r.axis()) })
	return out
}

func (r *sdyReader) dim() (d sdyDim) {
	r.list("{", "}", func() {
		switch {
		case d.open:
			r.fail("}")
		case r.has("?"):
			d.open = true
		default:
			d.axes = append(d.axes, r.axis())
		}
	})
	if r.has("p") {
		r.number()
	}
	return d
}

// sharding reads <@mesh, [{"x"}, {}], replicated={"y"}, unreduced={"z"}>.
func (r *sdyReader) sharding() sdySharding {
	r.has("#sdy.sharding")
	r.want("<")
	if r.has("mesh<") {
		panic(sdyError{"a mesh inside a sharding is not supported; define it with sdy.mesh and name it"})
	}
	s := sdySharding{mesh: r.symbol()}
	r.want(",")
	r.list("[", "]", func() { s.dims = append(s.dims, r.dim()) })
	for r.has(",") {
		switch {
		case r.has("replicated"):
			r.want("=")
			r.axes()
		case r.has("unreduced"):
			r.want("=")
			s.unreduced = append(s.unreduced, r.axes()...)
		default:
			r.fail("replicated or unreduced")
		}
	}
	r.want(">")
	return s
}

// shardings reads [<@mesh, …>, <@mesh, …>], with or without the name of the attribute.
func (r *sdyReader) shardings() (out []sdySharding) {
	named := r.has("#sdy.sharding_per_value")
	if named {
		r.want("<")
	}
	r.list("[", "]", func() { out = append(out, r.sharding()) })
	if named {
		r.want(">")
	}
	return out
}

// manual reads {"x", "y"}, with or without the name of the attribute.
func (r *sdyReader) manual() []sdyAxis {
	if !r.has("#sdy<manual_axes") {
		return r.axes()
	}
	a := r.axes()
	r.want(">")
	return a
}

// mesh reads <["x"=2, "y"=4], device_ids=[1, 0]>.
func (r *sdyReader) mesh() (m sdyMesh) {
	r.has("#sdy.mesh")
	r.want("<")
	r.list("[", "]", func() {
		m.axes = append(m.axes, r.quoted())
		r.want("=")
		m.sizes = append(m.sizes, r.number())
	})
	if r.has(",") {
		r.want("device_ids")
		r.want("=")
		m.ids = []int64{}
		r.list("[", "]", func() { m.ids = append(m.ids, r.number()) })
	}
	r.want(">")
	return m
}
