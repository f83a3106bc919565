package loc

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// aliases are those of a text, for tests.
type aliases map[string]string

func (a aliases) Alias(name string) string  { return a[name] }
func (a aliases) Expand(text string) string { return text }

// describe is what is known of a location in one line: its parts, those without a cost in parentheses.
func describe(l Loc) string {
	var out []string
	for _, p := range Parts(l) {
		t := TraceOf(p.Loc)
		text := strings.Join(t.Scopes, " | ")
		for _, f := range t.Frames {
			text += fmt.Sprintf(" < %s %s:%d:%d", f.Function, f.File, f.Line, f.Col)
		}
		if text = strings.TrimSpace(text); !p.Costs {
			text = "(" + text + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestRead(t *testing.T) {
	with := aliases{
		"#a": `loc("a.py":3:4 to :9)`, "#f": `loc("f"(#a))`, "#m": `loc("<module>"("main.py":9:0))`, "#s": `loc(callsite(#f at #m))`,
		"#self": "loc(#self)", "#one": "loc(#two)", "#two": `loc("x"(#one))`,
	}
	for text, want := range map[string]string{
		`loc("a.py":3:4)`:                           "<  a.py:3:4",
		`loc("a\22b.py":3:4 to 5:6)`:                `<  a"b.py:3:4`,
		`loc("jit(f)/add"(#s))`:                     "jit(f)/add < f a.py:3:4 < <module> main.py:9:0",
		`loc("jit(f)/add"("a.py":1:2))`:             "jit(f)/add <  a.py:1:2",
		`loc("f"("a.py":1:2))`:                      "< f a.py:1:2",
		`loc(callsite("max" at "jit(f)/jit"(#s)))`:  "jit(f)/jit | max < f a.py:3:4 < <module> main.py:9:0",
		`loc(fused[#f, "b", #f])`:                   "< f a.py:3:4; b",
		`loc(fused<"with">[#f, "b"])`:               "< f a.py:3:4; (b)",
		`loc(fused<#x.y<1, "]">>["a", "b"])`:        "a; b",
		`loc(fused[fused<"with">["a", "b"], "c"])`:  "a; (b); c",
		`loc("params['w']")`:                        "params['w']",
		`loc(unknown)`:                              "",
		`loc(#self)`:                                "",
		`loc(#one)`:                                 "x",
		`loc(#gone)`:                                "",
		`loc("a.py":x:1)`:                           "",
		`loc(#dlti.x<1>)`:                           "",
		`loc(callsite(unknown at "f"("a.py":1:2)))`: "< f a.py:1:2",
	} {
		got := describe(NewReader(with).Read(text))
		if got != want {
			t.Errorf("%s is %q, not %q", text, got, want)
		}
	}
}

// What gets a location in the place of a call, or under a name, keeps all of it.
func TestMapped(t *testing.T) {
	a, b, call := Named("mul", Named("f", At("a.py", 1, 0))), Named("max", nil), Named("jit(s)/jit", Named("g", At("b.py", 2, 0)))
	from := From(call)
	for want, l := range map[string]Loc{
		"jit(s)/jit | mul < f a.py:1:0 < g b.py:2:0":                                  a,
		"jit(s)/jit | max < g b.py:2:0":                                               b,
		"jit(s)/jit < g b.py:2:0":                                                     nil,
		"jit(s)/jit | mul < f a.py:1:0 < g b.py:2:0; (jit(s)/jit | max < g b.py:2:0)": Include(a, b),
	} {
		if got := describe(from.Of(l)); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if tr := TraceOf(Under(Gradient).Of(a)); !tr.Backward() || tr.Forward() || len(tr.Frames) != 1 {
		t.Errorf("a gradient's is %+v", tr)
	}
	if first := from.Of(a); first != from.Of(a) {
		t.Error("one location is made twice")
	}
}

// One op may come from any number of lines: the first stay.
func TestMany(t *testing.T) {
	var l Loc
	for i := range 1000 {
		l = Fuse(l, At("a.py", i, 0))
	}
	if n := len(Parts(l)); n != most {
		t.Errorf("%d locations", n)
	}
	if Fuse(l, At("b.py", 1, 0)) != l {
		t.Error("more than that changes it")
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{
		`loc("a.py":1:2 to :3)`, `loc(callsite("f"(#a) at #b))`, `loc(fused<"with">[#a, "x"])`, `loc(fused<#x<[>>["a"])`, `loc("a)`, `loc(#a)`, `loc(fused[,,])`, `loc("\`,
	} {
		f.Add(text, `loc("f"(#b))`, `loc("a.py":1:2)`)
	}
	f.Fuzz(func(t *testing.T, text, a, b string) {
		l := NewReader(aliases{"#a": a, "#b": b}).Read(text)
		if l == nil {
			return
		}
		written := map[Loc]string{}
		table := aliases{}
		var name func(Loc) string
		name = func(l Loc) string {
			if l == nil {
				return "unknown"
			}
			if _, done := written[l]; !done {
				text := l.Write(name)
				written[l] = fmt.Sprintf("#l%d", len(written))
				table[written[l]] = "loc(" + text + ")"
			}
			return written[l]
		}
		again := NewReader(table).Read("loc(" + name(l) + ")")
		if got, want := describe(again), describe(l); got != want {
			t.Errorf("%q became %q by %v", want, got, slices.Sorted(maps.Values(table)))
		}
	})
}
