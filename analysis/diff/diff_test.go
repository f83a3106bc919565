package diff_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/diff"
	"dmir/analysis/program"
	"dmir/syntax/source"
	"dmir/testkit/randprog"
)

func load(text string) *program.Program {
	return program.Load(source.New("in.dmir", text), program.Options{})
}

// check requires that every op of both versions, those in kernels apart, is in
// the comparison exactly once.
func check(t *testing.T, old, new *program.Program, fs []diff.Func) {
	t.Helper()
	seen, inner := map[*cost.Entry]int{}, map[*cost.Entry]bool{}
	funcs := map[*cost.Func]int{}
	for _, f := range fs {
		funcs[f.Old]++
		funcs[f.New]++
		for _, o := range f.Ops {
			if o.Old == nil && o.New == nil {
				t.Fatal("an op of neither version")
			}
			if k := o.Kernel; (k == nil) != (o.Inner == nil) || k != nil && (o.Old != nil && o.New != nil || !slices.Contains(k.Inner, o.Inner) || inner[o.Inner]) {
				t.Fatalf("%v is said to be %v in the kernel %v", o, o.Inner, k)
			}
			if o.Inner != nil {
				inner[o.Inner] = true
			}
			seen[o.Old]++
			seen[o.New]++
		}
	}
	for _, p := range []*program.Program{old, new} {
		for _, f := range p.Funcs {
			f = f.PerDevice()
			if funcs[f] != 1 {
				t.Fatalf("@%s is in the comparison %d times", f.Func.Name, funcs[f])
			}
			var walk func(es []*cost.Entry)
			walk = func(es []*cost.Entry) {
				for _, e := range es {
					if seen[e] != 1 {
						t.Fatalf("@%s: line %d: %s is in the comparison %d times", f.Func.Name, e.Line(), e.Op.Name, seen[e])
					}
					if !e.Fused {
						walk(e.Inner)
					}
				}
			}
			walk(f.Entries)
		}
	}
}

func none(t *testing.T, what string, fs []diff.Func) {
	t.Helper()
	for _, f := range fs {
		if f.Old == nil || f.New == nil {
			t.Fatalf("%s: a function has no partner", what)
		}
		for _, o := range f.Ops {
			if o.Changed() {
				t.Fatalf("%s: @%s: an op differs: %v", what, f.New.Func.Name, o)
			}
		}
	}
}

// A program and itself, and one whose names are all others, do not differ.
func TestSame(t *testing.T) {
	rename := strings.NewReplacer("%v", "%w", "%x", "%arg", "%row", "%r")
	for seed := range uint64(60) {
		text := randprog.Structure(seed, 10+int(seed), seed%2 == 1)
		a, b, c := load(text), load(text), load(rename.Replace(text))
		fs := diff.Programs(a, b)
		check(t, a, b, fs)
		none(t, "itself", fs)
		if out := (diff.Gate{Old: a, New: b}).Breaches(t.Context(), fs); len(out) > 0 {
			t.Fatalf("the gate reports %s", out[0].Message)
		}
		fs = diff.Programs(a, c)
		check(t, a, c, fs)
		none(t, "renamed", fs)
	}
	paths, _ := filepath.Glob("../../examples/*.dmir")
	if len(paths) == 0 {
		t.Fatal("no examples")
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		a, b := load(string(text)), load("\n// moved down\n"+string(text))
		fs := diff.Programs(a, b)
		check(t, a, b, fs)
		none(t, path, fs)
	}
}

// The other way round, what was added is removed, and nothing else changes.
func TestMirror(t *testing.T) {
	for seed := range uint64(40) {
		a, b := load(randprog.Structure(seed, 30, false)), load(randprog.Structure(seed+1000, 30, false))
		there, back := diff.Programs(a, b), diff.Programs(b, a)
		check(t, a, b, there)
		check(t, b, a, back)
		count := func(fs []diff.Func) (added, removed, both int) {
			for _, f := range fs {
				for _, o := range f.Ops {
					switch {
					case o.Old == nil:
						added++
					case o.New == nil:
						removed++
					default:
						both++
					}
				}
			}
			return
		}
		added, removed, both := count(there)
		if a2, r2, b2 := count(back); a2 != removed || r2 != added || b2 != both {
			t.Errorf("seed %d: %d added, %d removed, %d in both; backwards %d, %d, %d", seed, added, removed, both, a2, r2, b2)
		}
	}
}

// How ops find their partners. E is exp, and so on; T is the type of all.
func TestMatch(t *testing.T) {
	cases := []struct{ name, old, new, want string }{
		{
			"an op is added between numbers", "%0 = dm.exp %x : T\n%1 = dm.tanh %0 : T\nreturn %1 : T", "%0 = dm.relu %x : T\n%1 = dm.exp %0 : T\n%2 = dm.tanh %1 : T\nreturn %2 : T",
			"→%0 relu, %0 exp→%1, %1 tanh→%2",
		},
		{
			"names hold against order", "%a = dm.exp %x : T\n%b = dm.exp %x : T\nreturn %b : T", "%b = dm.exp %x : T\n%a = dm.exp %x : T\nreturn %b : T",
			"%b exp→%b, %a exp→%a",
		},
		{"another op of the same name", "%a = dm.exp %x : T\nreturn %a : T", "%a = dm.tanh %x : T\nreturn %a : T", "%a exp→%a tanh"},
		{"renamed", "%a = dm.exp %x : T\n%b = dm.tanh %a : T\nreturn %b : T", "%c = dm.exp %x : T\n%b = dm.tanh %c : T\nreturn %b : T", "%a exp→%c, %b tanh→%b"},
		{"one goes", "%a = dm.exp %x : T\n%b = dm.tanh %a : T\n%c = dm.relu %b : T\nreturn %c : T", "%a = dm.exp %x : T\n%c = dm.relu %a : T\nreturn %c : T", "%a exp→%a, %b tanh→, %c relu→%c"},
		{
			"into a kernel", "%a = dm.exp %x : T\n%b = dm.tanh %a : T\nreturn %b : T", "%k = dm.kernel -> T {\n%a = dm.exp %x : T\n%b = dm.tanh %a : T\ndm.yield %b : T\n}\nreturn %k : T",
			"→%k kernel, %a exp→ in %k as %a, %b tanh→ in %k as %b",
		},
		{
			"out of a kernel", "%k = dm.kernel -> T {\n%a = dm.exp %x : T\n%b = dm.tanh %a : T\ndm.yield %b : T\n}\nreturn %k : T", "%a = dm.exp %x : T\n%b = dm.tanh %a : T\nreturn %b : T",
			"→%a exp in %k as %a, →%b tanh in %k as %b, %k kernel→",
		},
		{
			"the second of two that are equal, by name", "%a = dm.exp %x : T\n%b = dm.exp %x : T\n%c = dm.add %a, %b : (T, T) -> T\nreturn %c : T",
			"%k = dm.kernel -> T {\n%b = dm.exp %x : T\ndm.yield %b : T\n}\n%l = dm.kernel -> T {\n%a = dm.exp %x : T\ndm.yield %a : T\n}\n%c = dm.add %l, %k : (T, T) -> T\nreturn %c : T",
			"→%k kernel, →%l kernel, %a exp→ in %l as %a, %b exp→ in %k as %b, %c add→%c",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text := func(body string) string {
				return strings.ReplaceAll("func.func @f(%x: T) -> T {\n"+body+"\n}", "T", "tensor<8xf32>")
			}
			a, b := load(text(c.old)), load(text(c.new))
			if a.HasErrors() || b.HasErrors() {
				t.Fatal(a.Diags, b.Diags)
			}
			fs := diff.Programs(a, b)
			check(t, a, b, fs)
			var got []string
			for _, o := range fs[0].Ops {
				var s string
				if o.Old != nil {
					s = o.Old.Results() + " " + strings.TrimPrefix(o.Old.Op.Name, "dm.")
				}
				if s += "→"; o.New != nil {
					s += o.New.Results()
					if o.Old == nil || o.Old.Op.Name != o.New.Op.Name {
						s += " " + strings.TrimPrefix(o.New.Op.Name, "dm.")
					}
				}
				if o.Kernel != nil {
					s += " in " + o.Kernel.Results() + " as " + o.Inner.Results()
				}
				got = append(got, s)
			}
			if s := strings.Join(got, ", "); s != c.want {
				t.Errorf("got  %s\nwant %s", s, c.want)
			}
		})
	}
}

// What passes the gate, and what the gate reports otherwise. Each body is that of
// @f(%x: T), 4 kB, or of %s, 4·n bytes.
func TestGate(t *testing.T) {
	const once, twice = "%a = dm.exp %x : T", "%a = dm.exp %x : T\n%b = dm.exp %a : T"
	const symOnce, symTwice = "%a = dm.exp %s : S", "%a = dm.exp %s : S\n%b = dm.exp %a : S"
	cases := []struct {
		name, attrs, old, new string
		tolerance             float64
		want                  string
	}{
		{"as before", "", once, once, 0, ""},
		{"less", "", twice, once, 0, ""},
		{"more", "", once, twice, 0, "@f moves 8.19 kB more than before as written: 16.4 kB, before 8.19 kB (+100 %); it cannot be compiled: programs are not compiled here; @f takes 1.40 µs more than before as written: 2.80 µs, before 1.40 µs (+100 %); it cannot be compiled: programs are not compiled here; @f holds 4.10 kB more than before"},
		{"more, as allowed", "", once, twice, 1, ""},
		{"more than is allowed", "", once, twice, 0.5, "@f moves 8.19 kB more than before as written: 16.4 kB, before 8.19 kB (+100 %, 50.0 % allowed); it cannot be compiled: programs are not compiled here; @f takes"},
		{"a formula that grows", "", symOnce, symTwice, 0, "@f moves 8*n B more than before as written: 16*n B, before 8*n B"},
		{"a formula that grows as allowed", "", symOnce, symTwice, 1, ""},
		{"a formula that shrinks", "", symTwice, symOnce, 0, ""},
		{"who knows", "", symOnce, once, 0, "whether @f moves more than before as written depends on n: 8.19 kB, before 8*n B"},
		{"beyond its budget", `{dm.max_moved = "1 kB", dm.max_time = "1 ns"}`, twice, once, 0, "@f moves 8.19 kB as written, 7.19 kB more than its budget of 1.00 kB; it cannot be compiled: programs are not compiled here; @f takes 1.40 µs as written, 1.40 µs more than its budget of 1.00 ns"},
		{"beyond its budget as written", `{dm.max_moved = "1 kB as written", dm.max_time = "1 ns as compiled"}`, twice, once, 0, "@f moves 8.19 kB as written, 7.19 kB more than its budget of 1.00 kB; @f takes 1.40 µs as written, 1.40 µs more than its budget of 1.00 ns; it cannot be compiled"},
		{"a budget that depends", `{dm.max_moved = "1 kB"}`, symOnce, symOnce, 0, "whether @f exceeds its dm.max_moved depends on n"},
		{"no budget at all", `{dm.max_moved = "much"}`, once, once, 0, "dm.max_moved: \"much\" is no dimension of @f"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text := func(body string) *program.Program {
				attrs := ""
				if c.attrs != "" {
					attrs = " attributes " + c.attrs
				}
				s := fmt.Sprintf("func.func @f(%%x: T, %%s: S)%s {\n%s\nreturn\n}", attrs, body)
				return load(strings.NewReplacer(": T", ": tensor<1024xf32>", ": S", ": tensor<?xf32, #dm.at<dims = [n]>>").Replace(s))
			}
			a, b := text(c.old), text(c.new)
			if a.HasErrors() || b.HasErrors() {
				t.Fatal(a.Diags, b.Diags)
			}
			var got []string
			for _, x := range (diff.Gate{Old: a, New: b, Tolerance: c.tolerance}).Breaches(t.Context(), diff.Programs(a, b)) {
				got = append(got, x.Message)
			}
			if s := strings.Join(got, "; "); (s == "") != (c.want == "") || !strings.HasPrefix(s, c.want) {
				t.Errorf("got  %s\nwant %s", s, c.want)
			}
		})
	}
}

// Two programs of thousands of ops, one of them edited.
func TestLarge(t *testing.T) {
	text := randprog.Structure(5, 10_000, false)
	a, b := load(text), load(strings.Replace(text, "dm.tanh", "dm.gelu", 1))
	fs := diff.Programs(a, b)
	check(t, a, b, fs)
	changed := 0
	for _, o := range fs[0].Ops {
		if o.Changed() {
			changed++
		}
	}
	if changed > 1 {
		t.Errorf("%d ops differ", changed)
	}
}

// Whatever the two texts, every op is compared once, and a text with itself
// has no difference.
func FuzzPrograms(f *testing.F) {
	for seed := range uint64(3) {
		f.Add(randprog.Structure(seed, 1, false), randprog.Structure(seed+9, 2, true))
	}
	f.Add("func.func @f(%x: tensor<4xf32>) {\n  %0:2 = \"a.b\"(%x) : (tensor<4xf32>) -> (f32, f32)\n  return\n}\n// -----\nfunc.func @f() {\n  return\n}", "")
	f.Fuzz(func(t *testing.T, old, new string) {
		a, b := load(old), load(new)
		fs := diff.Programs(a, b)
		check(t, a, b, fs)
		diff.Gate{Old: a, New: b, Tolerance: 0.05}.Breaches(t.Context(), fs)
		again := load(old)
		fs = diff.Programs(a, again)
		check(t, a, again, fs)
		none(t, "itself", fs)
	})
}
