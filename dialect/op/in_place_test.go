package op_test

import (
	"strings"
	"testing"

	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// An update is in place where its operand dies at it. A line's comment is the
// decision: "place", or the reason for a copy and who needs the value.
func TestInPlace(t *testing.T) {
	const u = "(!x, !u, tensor<i64>, tensor<i64>) -> !x"
	for name, body := range map[string]string{
		"an argument":      `%y = dm.dynamic_update_slice %x, %u, %i, %i : UPDATE // argument %x`,
		"donated = false":  `%y = dm.dynamic_update_slice %off, %u, %i, %i : UPDATE // argument %off`,
		"a donated one":    `%y = dm.dynamic_update_slice %d, %u, %i, %i : UPDATE // place`,
		"a constant":       "%c = dm.constant dense<0.0> : !x\n%y = dm.dynamic_update_slice %c, %u, %i, %i : UPDATE // constant %c",
		"a result":         "%h = dm.exp %x : !x\n%y = dm.dynamic_update_slice %h, %u, %i, %i : UPDATE // place",
		"read before":      "%h = dm.exp %x : !x\n%s = dm.exp %h : !x\n%y = dm.dynamic_update_slice %h, %u, %i, %i : UPDATE // place",
		"read later":       "%h = dm.exp %x : !x\n%y = dm.dynamic_update_slice %h, %u, %i, %i : UPDATE // read %h\n%s = dm.exp %h : !x",
		"donated, later":   "%y = dm.dynamic_update_slice %d, %u, %i, %i : UPDATE // read %d\n%s = dm.exp %d : !x",
		"kept, later":      "%y = dm.dynamic_update_slice %x, %u, %i, %i : UPDATE // read %x\n%s = dm.exp %x : !x",
		"a view later":     "%h = dm.exp %x : !x\n%v = dm.reshape %h : (!x) -> tensor<32xf32>\n%y = dm.dynamic_update_slice %h, %u, %i, %i : UPDATE // read %h\n%s = dm.exp %v : tensor<32xf32>",
		"a view of it":     "%h = dm.exp %x : !x\n%v = dm.reshape %h : (!x) -> tensor<4x8xf32>\n%y = dm.dynamic_update_slice %v, %u, %i, %i : UPDATE // place",
		"twice":            "%h = dm.exp %x : !x\n%y = dm.dynamic_update_slice %h, %u, %i, %i : UPDATE // place\n%z = dm.dynamic_update_slice %y, %u, %i, %i : UPDATE // place",
		"from one value":   "%h = dm.exp %x : !x\n%y = dm.dynamic_update_slice %h, %u, %i, %i : UPDATE // read %h\n%z = dm.dynamic_update_slice %h, %u, %i, %i : UPDATE // place",
		"by itself":        "%h = dm.exp %u : !u\n%y = dm.dynamic_update_slice %h, %h, %i, %i : (!u, !u, tensor<i64>, tensor<i64>) -> !u // twice %h",
		"used in a branch": "%h = dm.exp %x : !x\n%y = dm.dynamic_update_slice %h, %u, %i, %i : UPDATE // read %h\n%b = dm.if %p : (tensor<i1>) -> !x {\n%e = dm.exp %h : !x\ndm.yield %e : !x\n} else {\ndm.yield %x : !x\n}",
		"in a branch":      "%h = dm.exp %x : !x\n%b = dm.if %p : (tensor<i1>) -> !x {\n%y = dm.dynamic_update_slice %h, %u, %i, %i : UPDATE // outside %h\ndm.yield %y : !x\n} else {\ndm.yield %x : !x\n}",
		"in a kernel":      "%h = dm.exp %x : !x\n%k = dm.kernel -> !x {\n%v = dm.exp %u : !u\n%y = dm.dynamic_update_slice %h, %v, %i, %i : UPDATE // place\ndm.yield %y : !x\n}",
		"made in a kernel": "%k = dm.kernel -> !x {\n%h = dm.exp %x : !x\n%y = dm.dynamic_update_slice %h, %u, %i, %i : UPDATE // kernel %h\ndm.yield %y : !x\n}",
		"read in a kernel": "%h = dm.exp %x : !x\n%k, %l = dm.kernel -> (!x, !x) {\n%y = dm.dynamic_update_slice %h, %u, %i, %i : UPDATE // twice %h\n%e = dm.exp %h : !x\ndm.yield %y, %e : !x, !x\n}",
		"the result read":  "%h = dm.exp %x : !x\n%k = dm.kernel -> !x {\n%y = dm.dynamic_update_slice %h, %u, %i, %i : UPDATE // kernel %y\n%e = dm.exp %y : !x\ndm.yield %e : !x\n}",
		"a scatter":        "%h = dm.exp %x : !x\n%y = dm.scatter add %h, %at, %rows, dim = 0 : (!x, tensor<2xi64>, tensor<2x8xf32>) -> !x // place",
		"another order":    "%h = dm.exp %x : !x\n%y = dm.dynamic_update_slice %h, %u, %i, %i : (!x, !u, tensor<i64>, tensor<i64>) -> tensor<4x8xf32, #dm.at<order = [1, 0]>> // order %h",
		"a loop's":         loop("%y = dm.dynamic_update_slice %k, %u, %n, %n : UPDATE // place", "%y, %l"),
		"given elsewhere":  loop("%y = dm.dynamic_update_slice %k, %u, %n, %n : UPDATE // carried %k", "%l, %y"),
		"kept by the loop": loop("%y = dm.dynamic_update_slice %k, %u, %n, %n : UPDATE // read %k", "%k, %y"),
		"from around":      loop("%y = dm.dynamic_update_slice %h, %u, %n, %n : UPDATE // outside %h", "%y, %l"),
	} {
		t.Run(name, func(t *testing.T) {
			text := "!x = tensor<4x8xf32>\n!u = tensor<1x8xf32>\nfunc.func @f(%x: !x, %d: !x {dm.donated}, %off: !x {dm.donated = false}, %u: !u, %i: tensor<i64>, %p: tensor<i1>, %at: tensor<2xi64>, %rows: tensor<2x8xf32>) {\n" + strings.ReplaceAll(body, "UPDATE", u) + "\nreturn\n}\n"
			src := source.New("f.dmir", text)
			m := lower.File(parse.File(src))[0]
			for _, d := range m.Diags {
				t.Fatalf("%s\n%s", d.Message, text)
			}
			var p op.InPlace
			seen := 0
			ir.Walk(m.Ops, func(o *ir.Op) bool {
				if !op.Updates(o) {
					return true
				}
				seen++
				_, want, _ := strings.Cut(src.Line(src.Pos(o.Span.Start).Line), "// ")
				got := "place"
				if c := p.Copied(o); c != nil {
					got = string(c.Why) + " " + c.Of.Name
				}
				if strings.TrimSpace(want) != got {
					t.Errorf("%s, want %s", got, want)
				}
				return true
			})
			if seen == 0 {
				t.Errorf("no update:\n%s", text)
			}
		})
	}
}

// loop carries %k and %l and passes on the values in next.
func loop(update, next string) string {
	return `%h = dm.exp %x : !x
%zero = dm.constant dense<0> : tensor<i64>
%r:3 = dm.while %zero, %h, %x : (tensor<i64>, !x, !x) -> (tensor<i64>, !x, !x) {
^bb0(%n: tensor<i64>, %k: !x, %l: !x):
  %more = dm.compare lt %n, %zero : (tensor<i64>, tensor<i64>) -> tensor<i1>
  dm.yield %more : tensor<i1>
} do {
^bb0(%n: tensor<i64>, %k: !x, %l: !x):
` + update + `
  dm.yield %n, ` + next + ` : tensor<i64>, !x, !x
}`
}

// A loop begins with a copy of what something else needs.
func TestKept(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"dies", "%h = dm.exp %x : !x\nLOOP", "place"},
		{"read later", "%h = dm.exp %x : !x\nLOOP\n%s = dm.exp %h : !x", "read %h"},
		{"read in a round", "%h = dm.exp %x : !x\nROUND", "twice %h"},
	} {
		t.Run(c.name, func(t *testing.T) {
			round := func(body string) string {
				return "%zero = dm.constant dense<0> : tensor<i64>\n%n, %r = dm.while %zero, %h : (tensor<i64>, !x) -> (tensor<i64>, !x) {\n^bb0(%i: tensor<i64>, %k: !x):\n%more = dm.compare lt %i, %zero : (tensor<i64>, tensor<i64>) -> tensor<i1>\ndm.yield %more : tensor<i1>\n} do {\n^bb0(%i: tensor<i64>, %k: !x):\n" + body + "\ndm.yield %i, %v : tensor<i64>, !x\n}"
			}
			text := "!x = tensor<4x8xf32>\nfunc.func @f(%x: !x) {\n" + strings.NewReplacer("LOOP", round("%v = dm.exp %k : !x"), "ROUND", round("%v = dm.add %k, %h : !x")).Replace(c.text) + "\nreturn\n}\n"
			_, o := first(t, text, "dm.while")
			got := "place"
			if why := new(op.InPlace).Kept(o, 1); why != nil {
				got = string(why.Why) + " " + why.Of.Name
			}
			if got != c.want {
				t.Errorf("%s, want %s\n%s", got, c.want, text)
			}
		})
	}
}

// What a loop carries is written over by its next value, where every other reader runs before and the op reads each element where it
// writes it, or none.
func TestCarriedOver(t *testing.T) {
	for _, c := range []struct{ name, update, next, op, want string }{
		{"element-wise", "%v = dm.add %k, %l : !x", "%v, %l", "dm.add", "%k"},
		{"both", "%v = dm.add %k, %l : !x\n%w = dm.sub %k, %l : !x", "%v, %w", "dm.sub", "%l"},
		{"read later", "%v = dm.add %k, %l : !x\n%w = dm.sub %k, %l : !x", "%v, %w", "dm.add", ""},
		{"handed on too", "%v = dm.add %k, %l : !x", "%l, %v", "dm.add", ""},
		{"row by row", "%v = dm.softmax %k, dim = 1 : !x", "%v, %l", "dm.softmax", ""},
		{"row by row of another", "%v = dm.softmax %l, dim = 1 : !x", "%v, %l", "dm.softmax", "%k"},
		{"read by the op that hands on", "%v = dm.softmax %l, dim = 1 : !x", "%v, %k", "dm.softmax", ""},
		{"no next value", "%v = dm.softmax %l, dim = 1 : !x", "%k, %l", "dm.softmax", ""},
		{"one for two", "%v = dm.exp %k : !x", "%v, %v", "dm.exp", "%k"},
		{"in the kernel", "%v = dm.kernel -> !x {\n%s = dm.exp %k : !x\n%t = dm.mul %s, %l : !x\ndm.yield %t : !x\n}", "%v, %l", "dm.kernel", "%k"},
		{"transposed in the kernel", "%v = dm.kernel -> !x {\n%s = dm.reverse %k, dims = [0] : !x\ndm.yield %s : !x\n}", "%v, %l", "dm.kernel", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "!x = tensor<4x8xf32>\nfunc.func @f(%x: !x) {\n" + loop(c.update, c.next) + "\nreturn\n}\n"
			_, w := first(t, text, "dm.while")
			for _, o := range w.Body(1).Ops {
				if o.Name != c.op {
					continue
				}
				got := ""
				if v := new(op.InPlace).Over(o, 0); v != nil {
					got = v.Name
				}
				if got != c.want {
					t.Errorf("written over %q, want %q\n%s", got, c.want, text)
				}
				return
			}
			t.Errorf("no %s\n%s", c.op, text)
		})
	}
}
