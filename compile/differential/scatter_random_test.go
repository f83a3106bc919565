package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dmir/testkit/need"
)

// scatters writes programs whose scatters are grouped by row, or just not, with sizes
// around those of warps, vectors, blocks and strips.
type scatters struct {
	*rand.Rand
	b     strings.Builder
	args  []string
	names int
	elem  string
}

func pick[T any](w *scatters, of ...T) T { return of[w.IntN(len(of))] }

func (w *scatters) line(format string, args ...any) { fmt.Fprintf(&w.b, "  "+format+"\n", args...) }

func (w *scatters) name() string {
	w.names++
	return fmt.Sprintf("%%v%d", w.names)
}

// argument is an argument of the function.
func (w *scatters) argument(typ, attrs string) string {
	n := w.name()
	w.args = append(w.args, n+": "+typ+attrs)
	return n
}

func shaped(shape []int, elem string) string {
	var b strings.Builder
	for _, n := range shape {
		fmt.Fprintf(&b, "%dx", n)
	}
	return "tensor<" + b.String() + elem + ">"
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// indexing is a scatter's operand, its indices and what they select.
type indexing struct {
	table, ids, updates []int
	rows                int
	clauses, id         string
}

// indexing draws shapes, of at most so many elements.
func (w *scatters) indexing(most int) indexing {
	for {
		var x indexing
		x.rows = pick(w, 1, 2, 31, 33, 255, 256, 257, 511, 513, 600, 1024, 1025, 4097)
		count := pick(w, 1, 32, 343, 350, 511, 512, 513, 600, 1023, 1025, 4095, 4097)
		inner := pick(w, nil, nil, []int{1}, []int{2}, []int{3}, []int{4}, []int{6}, []int{8}, []int{16}, []int{3, 5}, []int{2, 8})
		outer := pick(w, nil, nil, nil, []int{2}, []int{3}, []int{2, 3})
		batch := 0
		if len(outer) > 0 {
			batch = w.IntN(len(outer) + 1)
		}
		indices := []int{count}
		if n := pick(w, 1, 1, 2, 3, 7); count%n == 0 {
			indices = []int{n, count / n}
		}
		x.table = append(append(append(x.table, outer...), x.rows), inner...)
		x.ids = append(append(x.ids, outer[:batch]...), indices...)
		x.updates = append(append(append(x.updates, outer...), indices...), inner...)
		if elements(x.table) > most || elements(x.updates) > most {
			continue
		}
		x.clauses = fmt.Sprintf("dim = %d, batch_dims = %d", len(outer), batch)
		x.id = pick(w, "i32", "i64", "ui32", "ui64")
		return x
	}
}

// indices are those of x, of which some name no row, some beyond 32 bits.
func (w *scatters) indices(x indexing, rows int) string {
	t, low := shaped(x.ids, x.id), -3
	if x.id[0] == 'u' {
		low = 0
	}
	n := w.name()
	switch w.IntN(6) {
	case 0: // few rows have all of them
		w.line("%s = dm.rng uniform, seed = %d, low = %d, high = %d : %s", n, w.IntN(99), low, min(rows, 4)+1, t)
	case 1:
		w.line("%s = dm.iota dim = %d, start = %d : %s", n, len(x.ids)-1, max(low, -2), t)
	case 2:
		w.line("%s = dm.constant dense<%d> : %s", n, pick(w, 0, rows-1, rows), t)
	default:
		w.line("%s = dm.rng uniform, seed = %d, low = %d, high = %d : %s", n, w.IntN(99), low, rows+rows/8+2, t)
	}
	if strings.HasSuffix(x.id, "64") && w.IntN(2) == 0 {
		far, step, sum := w.name(), w.name(), w.name()
		w.line("%s = dm.rng uniform, seed = %d, low = 0, high = 3 : %s", far, w.IntN(99), t)
		w.line("%s_by = dm.constant dense<%s> : %s", step, pick(w, "4294967296", "2147483648", "4611686018427387904"), t)
		w.line("%[1]s = dm.mul %[2]s, %[1]s_by : %[3]s", step, far, t)
		w.line("%s = dm.add %s, %s : %s", sum, n, step, t)
		n = sum
	}
	return n
}

// updates are new values in the shape of x's updates.
func (w *scatters) updates(x indexing) string { return w.argument(shaped(x.updates, w.elem), "") }

// scatter writes a scatter of u into v.
func (w *scatters) scatter(kind, v, ids, u string, x indexing) string {
	n, t := w.name(), shaped(x.table, w.elem)
	w.line("%s = dm.scatter %s %s, %s, %s, %s : (%s, %s, %s) -> %s", n, kind, v, ids, u, x.clauses, t, shaped(x.ids, x.id), shaped(x.updates, w.elem), t)
	return n
}

// numbers reports whether there is arithmetic on w's elements.
func (w *scatters) numbers() bool {
	return w.elem != "i1" && w.elem != "i4" && !strings.HasPrefix(w.elem, "f8")
}

func (w *scatters) kind() string {
	if !w.numbers() {
		return "set"
	}
	return pick(w, "set", "set", "add", "add", "add", "max", "min")
}

// program is a random program; its name says what the scatters are used with.
func (w *scatters) program() (name, text string) {
	w.elem = pick(w, "f32", "f32", "f16", "bf16", "f64", "i32", "i64", "i8", "ui8", "i16", "i1", "i4", "f8E4M3FN")
	x := w.indexing(20000)
	rows, table := x.rows, shaped(x.table, w.elem)
	donated := pick(w, "", " {dm.donated}")
	v := w.argument(table, donated)
	results := []string{}
	types := []string{}
	yield := func(n, t string) { results, types = append(results, n), append(types, t) }
	uses := []string{"alone", "chained", "shared", "nested"}
	if w.numbers() {
		uses = append(uses, "kernel", "kernel of two", "nested in a kernel", "gather", "pointwise")
	}
	name = pick(w, uses...)
	square := func(u string) string {
		n := w.name()
		w.line("%s = dm.mul %s, %s : %s", n, u, u, shaped(x.updates, w.elem))
		return n
	}
	// kernel writes what body writes as one kernel, which yields so many tables.
	kernel := func(n int, body func() []string) {
		outer := w.b.String()
		w.b.Reset()
		inner := body()
		text := w.b.String()
		w.b.Reset()
		w.b.WriteString(outer)
		var out, ts []string
		for range n {
			out, ts = append(out, w.name()), append(ts, table)
			yield(out[len(out)-1], table)
		}
		all := strings.Join(ts, ", ")
		w.line("%s = dm.kernel -> (%s) {", strings.Join(out, ", "), all)
		for l := range strings.Lines(text) {
			w.b.WriteString("  " + l)
		}
		w.line("  dm.yield %s : %s\n  }", strings.Join(inner, ", "), all)
	}
	ids := w.indices(x, rows)
	// rewritten are indices that a scatter has written.
	rewritten := func() string {
		n, t := w.name(), shaped(x.ids, x.id)
		at := x.ids[len(x.ids)-1]
		w.line("%s_at = dm.iota dim = 0, start = %d, step = -1 : tensor<%dx%s>", n, at-1, at, x.id)
		w.line("%s = dm.scatter set %s, %s_at, %s, dim = %d : (%s, tensor<%dx%s>, %s) -> %s", n, ids, n, ids, len(x.ids)-1, t, at, x.id, t, t)
		return n
	}
	switch name {
	case "alone":
		yield(w.scatter(w.kind(), v, ids, w.updates(x), x), table)
	case "pointwise":
		p := w.argument(table, "")
		s := w.scatter(w.kind(), v, ids, square(w.updates(x)), x)
		n := w.name()
		w.line("%s = dm.sub %s, %s : %s", n, p, s, table)
		yield(n, table)
	case "chained":
		s := w.scatter(w.kind(), v, ids, w.updates(x), x)
		yield(w.scatter(w.kind(), s, w.indices(x, rows), w.updates(x), x), table)
	case "shared":
		yield(w.scatter(w.kind(), v, ids, w.updates(x), x), table)
		yield(w.scatter(w.kind(), w.argument(table, donated), ids, w.updates(x), x), table)
	case "nested":
		yield(w.scatter(w.kind(), v, rewritten(), w.updates(x), x), table)
	case "kernel":
		u := w.updates(x)
		kernel(1, func() []string { return []string{w.scatter(w.kind(), v, ids, square(u), x)} })
	case "kernel of two":
		u, p, other := w.updates(x), w.argument(table, donated), ids
		if w.IntN(2) == 0 {
			other = w.indices(x, rows)
		}
		kernel(2, func() []string {
			return []string{w.scatter(w.kind(), v, ids, square(u), x), w.scatter(w.kind(), p, other, u, x)}
		})
	case "nested in a kernel":
		u := w.updates(x)
		kernel(1, func() []string { return []string{w.scatter(w.kind(), v, rewritten(), u, x)} })
	case "gather":
		g := w.name()
		w.line("%s = dm.gather %s, %s, %s : (%s, %s) -> %s", g, w.argument(table, ""), ids, x.clauses, table, shaped(x.ids, x.id), shaped(x.updates, w.elem))
		yield(w.scatter(w.kind(), v, ids, g, x), table)
	}
	head := fmt.Sprintf("func.func @f(%s) -> (%s) {\n", strings.Join(w.args, ", "), strings.Join(types, ", "))
	w.line("return %s : %s", strings.Join(results, ", "), strings.Join(types, ", "))
	return name, head + w.b.String() + "}\n"
}

// Random scatters agree with the reference.
func TestRandomScatters(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	for seed := uint64(0); seed < *scattered; seed += Batch {
		var cases []Case
		for s := seed; s < min(*scattered, seed+Batch); s++ {
			w := &scatters{Rand: rand.New(rand.NewPCG(s, 3))}
			name, text := w.program()
			cases = append(cases, Case{
				Name: fmt.Sprintf("%s, seed %d", name, s), Text: text, Seed: 7,
				Arch: []string{"", "", "sm_80", "sm_90a"}[s%4], Unfused: s%8 == 5,
			})
		}
		for _, f := range found(t, cases) {
			t.Errorf("%v\n%s", f, f.Case.Text)
		}
	}
}
