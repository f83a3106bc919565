package scope_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

// mark is «1=%x» where name 1 is defined, «1 %x» where it is used.
var mark = regexp.MustCompile(`«(\w+)([= ])([^»]*)»`)

type marked struct {
	id   string
	def  bool
	span source.Span
}

// unmark takes the marks out of a text.
func unmark(text string) (string, []marked) {
	var b strings.Builder
	var marks []marked
	last := 0
	for _, m := range mark.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[last:m[0]])
		start := b.Len()
		b.WriteString(text[m[6]:m[7]])
		marks = append(marks, marked{text[m[2]:m[3]], text[m[4]:m[5]] == "=", source.Span{Start: start, End: b.Len()}})
		last = m[1]
	}
	b.WriteString(text[last:])
	return b.String(), marks
}

// calls are the ops whose callee has to exist.
func calls(op string) bool { return op == "call" || op == "func.call" }

func index(text string) *scope.Index {
	return scope.Build(parse.File(source.New("test.mlir", text)), calls)
}

func TestBuild(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"two functions have values of one name", `
func.func @f(«1=%a»: i32) -> i32 {
  «2=%x» = t.op «1 %a», «1 %a» : i32
  return «2 %x» : i32
}
func.func @g(«3=%a»: i32) -> i32 {
  «4=%x» = t.op «3 %a» : i32
  return «4 %x» : i32
}`},
		{"the arguments of a label use aliases in their types", `
«1=!act» = tensor<4xf32>
«2=#host» = #dm.at<host>
func.func @f(%x: «1 !act») {
  t.br ^bb
^bb(%a: «1 !act», %b: tensor<4xf32, «2 #host»>, %c: !llvm.ptr<1>):
  return
}`},
		{"meshes and their axes", `
dm.mesh «1=@pod» {«2=data» = 16, "«3=model»" = 8}
"dm.mesh"() <{axes = ["«5=data»"], sizes = [2], sym_name = "«4=two words»"}> : () -> ()
«6=!t» = tensor<4x8xf32, #dm.at<host, split = «1 @pod»[{«2 data»}, {«3 model»:(2)4, ?}], order = [1, 0], partial = max{«2 data»:(1)2}>>
func.func «7=@f»(«8=%x»: tensor<4xf32, #dm.at<split=«4 @"two words"»[{«5 data», «9 y»}]>> {dm.global = tensor<4xf32, #dm.at<split = «1 @pod»[{}]>>},
    «a=%n»: tensor<4xf32, #dm.at<split = «b @nowhere»[{«c data»}]>>) -> «6 !t» attributes {dm.mesh = «1 @pod», x = @q[{data}]} {
  «d=%k» = dm.if «8 %x» -> tensor<f32> {
    «e=%y» = dm.all_reduce add «8 %x», axes = ["«2 data»:(2)4", «3 model», "«f z»"] : tensor<4xf32>
    dm.yield «e %y» : tensor<4xf32>
  }
  «g=%z» = "dm.all_gather"(«8 %x») <{axes = ["«3 model»"], dim = 0}> : (tensor<4xf32>) -> tensor<8xf32>
  return
}
func.func «h=@g»() {
  «i=%i» = dm.partition_id axes = ["data"] : tensor<i64>
  return
}`},
		{"nested regions see the values around them", `
func.func @f(«1=%a»: i32, «2=%c»: i1) {
  scf.if «2 %c» {
    «3=%x» = t.op «1 %a» : i32
    t.use «3 %x» : i32
  } else {
    «4=%x» = t.op «1 %a» : i32
    t.use «4 %x» : i32
  }
  return
}`},
		{"a loop defines its variables for its body", `
func.func @f(«1=%n»: index, «2=%init»: f32) {
  «3=%r» = scf.for «4=%i» = «1 %n» to «1 %n» step «1 %n» iter_args(«5=%acc» = «2 %init») -> (f32) {
    «6=%y» = t.op «4 %i», «5 %acc» : f32
    scf.yield «6 %y» : f32
  }
  t.use «3 %r» : f32
  return
}`},
		{"a result whose state is an argument", `
func.func @f(«1=%w»: i32, «2=%x»: i32) -> (i32 {dm.note = "x", dm.state = "«1 w»"}, i32 {dm.state = "y"}) {
  return «1 %w», «2 %x» : i32, i32
}`},
		{"results by number", `
«1=%p»:2, «2=%q» = "t.op"() : () -> (i32, i32, i32)
"t.use"(«1 %p»#0, «1 %p»#1, «2 %q») : (i32, i32, i32) -> ()`},
		{"labels are those of their region", `
func.func @f() {
  cf.br «1 ^bb1»
«1=^bb1»:
  cf.br «2 ^bb2»(%x : i32)
«2=^bb2»(«3=%b»: i32):
  t.use «3 %b» : i32
}
func.func @g() {
  "t.br"()[«4 ^bb1»] : () -> ()
«4=^bb1»:
  return
}`},
		{"symbols of nested modules", `
module {
  module @m {
    func.func private «1=@f»()
    func.func @g() { call «1 @f»() : () -> () return }
  }
  func.func private «2=@f»()
  func.func @h() {
    call «2 @f»() : () -> ()
    "t.ref"() {a = @m::«1 @f», b = [«2 @f»]} : () -> ()
    return
  }
}`},
		{"symbols in generic form", `
"builtin.module"() ({
  "func.func"() <{function_type = () -> (), other = "f", sym_name = "«1=f»"}> ({
    "func.return"() : () -> ()
  }) : () -> ()
  "func.call"() <{callee = «1 @f»}> : () -> ()
  "func.call"() <{callee = «1 @"f"»}> : () -> ()
}) : () -> ()`},
		{"aliases, and sections of a file", `
«1=#map» = affine_map<(d0) -> (d0)>
«2=!t» = tensor<4xf32, «1 #map»>
func.func private «3=@f»(«2 !t») -> «2 !t»
// -----
«4=!t» = i32
func.func private «5=@f»(«4 !t»)
func.func @g(%x: «4 !t») { call «5 @f»(%x) : («4 !t») -> () return }`},
		{"unknown symbols are one name in a section", `
t.op «1 @nowhere»
module { t.op «1 @nowhere» }
// -----
t.op «2 @nowhere»`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, marks := unmark(c.text)
			x := index(text)
			ids := map[string]*scope.Name{}
			for _, m := range marks {
				n, span, ok := x.At(m.span.Start)
				word := text[m.span.Start:m.span.End]
				if !ok || span != m.span {
					t.Errorf("At %s is %v, %v; want %v", word, span, ok, m.span)
					continue
				}
				if _, end, _ := x.At(m.span.End); end != span {
					t.Errorf("just behind %s is %v, want %v", word, end, span)
				}
				list := n.Uses()
				if m.def {
					list = n.Defs()
				}
				if !slices.Contains(list, span) {
					t.Errorf("%s at %v is not listed: defs %v, uses %v", word, span, n.Defs(), n.Uses())
				}
				for id, other := range ids {
					if (id == m.id) != (other == n) {
						t.Errorf("%s at %v is name %s or %s, which is wrong", word, span, id, m.id)
					}
				}
				ids[m.id] = n
			}
		})
	}
}

func TestDiagnostics(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"values are another package's", "func.func @f(%a: i32) {\n  %a = dm.neg %x#3 : i32\n  return\n}", nil},
		{"unknown block", "func.func @f() {\n  \"cf.br\"()[^bb1] : () -> ()\n}", []string{"2:13 error DM171 there is no block ^bb1 in this region"}},
		{"in another dialect only a hint", "func.func @f() {\n  cf.br ^bb1\n}", []string{"2:9 hint DM171 there is no block ^bb1 in this region"}},
		{"redefined block", "func.func @f() {\n^a:\n  return\n^a:\n  return\n}", []string{"4:1 error DM173 the block ^a is defined twice (first defined here 2:1)"}},
		{"unknown function", "func.func @f() {\n  call @g() : () -> ()\n  return\n}", []string{"2:8 error DM169 there is no function @g"}},
		{"a function of another module", "module { func.func private @g() }\nfunc.func @f() {\n  call @g() : () -> ()\n  return\n}", []string{"3:8 error DM169 there is no function @g"}},
		{"misspelt function", "func.func private @layer()\nfunc.func private @\"a layer\"()\nfunc.func @f() {\n  call @layr() : () -> ()\n  call @\"a-layer\"() : () -> ()\n  return\n}", []string{
			"4:8 error DM169 there is no function @layr (did you mean @layer?)", "5:8 error DM169 there is no function @\"a-layer\" (did you mean @\"a layer\"?)",
		}},
		{"redefined function", "func.func private @f()\nfunc.func private @f()", []string{"2:19 error DM170 the function @f is defined twice (first defined here 1:19)"}},
		{"redefined symbol", "\"t.global\"() {sym_name = \"g\"} : () -> ()\n\"t.global\"() {sym_name = \"g\"} : () -> ()", []string{"2:27 error DM170 the symbol @g is defined twice (first defined here 1:27)"}},
		{"unknown alias", "func.func private @f(!t)", []string{"1:22 error DM151 the type alias !t is not defined"}},
		{"redefined alias", "#a = 1 : i32\n#a = 2 : i32", []string{"2:1 error DM173 the alias #a is defined twice (first defined here 1:1)"}},
		{"in order of position", "func.func @f() {\n  return %x : !t\n}\n#a = 1\n#a = 1", []string{
			"2:15 error DM151 the type alias !t is not defined", "5:1 error DM173 the alias #a is defined twice (first defined here 4:1)",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := source.New("test.mlir", c.text)
			var got []string
			for _, d := range scope.Build(parse.File(src), calls).Diags {
				got = append(got, show(src, d))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
		})
	}
}

func show(src *source.File, d diag.Diagnostic) string {
	line, col := src.Human(d.Span.Start)
	s := fmt.Sprintf("%d:%d %s %s %s", line, col, d.Severity, d.Code, d.Message)
	for _, r := range d.Related {
		line, col = src.Human(r.Span.Start)
		s += fmt.Sprintf(" (%s %d:%d)", r.Message, line, col)
	}
	if len(d.Fixes) > 0 {
		s += " (" + d.Help + ")"
	}
	return s
}

func TestRename(t *testing.T) {
	// The name at "‸" is renamed.
	for _, c := range []struct{ name, text, to, want string }{
		{"a value", "func.func @f(%‸a: i32) { return %a#0 : i32 }", "b", "func.func @f(%b: i32) { return %b#0 : i32 }"},
		{"with its sigil", "func.func @f(%a: i32) { return %‸a : i32 }", "%0", "func.func @f(%0: i32) { return %0 : i32 }"},
		{"to itself", "func.func @f(%‸a: i32) { return }", "a", "func.func @f(%a: i32) { return }"},
		{"to a name that another function has", "func.func @f(%‸a: i32) { return }\nfunc.func @g(%b: i32) { return }", "b", "func.func @f(%b: i32) { return }\nfunc.func @g(%b: i32) { return }"},
		{"to a name taken", "func.func @f(%‸a: i32, %b: i32) { return }", "b", "error: %b is already the name of another value here"},
		{"to a name that a nested region has", "func.func @f(%‸a: i32) {\n  t.r {\n    %b = t.op %a : i32\n  }\n  return\n}", "b", "error: %b is already the name of another value here"},
		{"to a name seen from around", "func.func @f(%a: i32) {\n  t.r {\n    %‸b = t.op %a : i32\n  }\n  return\n}", "a", "error: %a is already the name of another value here"},
		{"to no name", "func.func @f(%‸a: i32) { return }", "0x", "error: 0x is not the name of a value: write a number, or letters, digits and $._- that do not begin with a digit"},
		{"a label", "func.func @f() {\n  cf.br ^‸a\n^a:\n  return\n}", "^b", "func.func @f() {\n  cf.br ^b\n^b:\n  return\n}"},
		{"a symbol", "func.func private @‸f()\nfunc.func @g() { call @f() : () -> () return }", "h", "func.func private @h()\nfunc.func @g() { call @h() : () -> () return }"},
		{"a symbol that needs quotes", "t.op @‸f", `@"a b"`, `t.op @"a b"`},
		{"a symbol in generic form", "\"func.func\"() <{sym_name = \"f\"}> ({}) : () -> ()\n\"t.use\"() {f = @‸f} : () -> ()", "g", "\"func.func\"() <{sym_name = \"g\"}> ({}) : () -> ()\n\"t.use\"() {f = @g} : () -> ()"},
		{"an argument that a result names", "func.func @f(%‸w: i32) -> (i32 {dm.state = \"w\"}) { return %w : i32 }", "%v", "func.func @f(%v: i32) -> (i32 {dm.state = \"v\"}) { return %v : i32 }"},
		{"a symbol to one of the module around", "module {\n  func.func private @a()\n  module {\n    func.func private @‸b()\n  }\n}", "a", "error: @a is already the name of another symbol here"},
		{"a symbol to none", "t.op @‸f", "a b", "error: a b is not a symbol: write a letter or _ and then letters, digits and _$., or put it in quotes"},
		{
			"a mesh", "dm.mesh @‸m {x = 2}\nfunc.func @f(%a: tensor<4xf32, #dm.at<split = @m[{x}]>>) attributes {dm.mesh = @m} { return }", "pod",
			"dm.mesh @pod {x = 2}\nfunc.func @f(%a: tensor<4xf32, #dm.at<split = @pod[{x}]>>) attributes {dm.mesh = @pod} { return }",
		},
		{
			"an axis", "dm.mesh @m {‸x = 2}\ndm.mesh @n {x = 2, z = 4}\nfunc.func @f(%a: tensor<4xf32, #dm.at<split = @m[{x:(1)2}], partial = {x}>>) attributes {dm.mesh = @m} {\n  %i = dm.partition_id axes = [\"x\"] : tensor<i64>\n  return\n}", "z",
			"dm.mesh @m {z = 2}\ndm.mesh @n {x = 2, z = 4}\nfunc.func @f(%a: tensor<4xf32, #dm.at<split = @m[{z:(1)2}], partial = {z}>>) attributes {dm.mesh = @m} {\n  %i = dm.partition_id axes = [\"z\"] : tensor<i64>\n  return\n}",
		},
		{"an axis to another of its mesh", "dm.mesh @m {‸x = 2, y = 3}", "y", "error: y is already the name of another axis here"},
		{"an axis to a part", "dm.mesh @m {‸x = 2, y = 3}", "y:(1)2", "error: y:(1)2 is not an axis: write a letter or _ and then letters, digits, dots, _ and $"},
		{"an alias", "!‸t = i32\nfunc.func private @f(!t)", "u", "!u = i32\nfunc.func private @f(!u)"},
		{"an alias to a dialect's type", "!‸t = i32", "d.t", "error: d.t is not an alias: write a letter or _ and then letters, digits, _ and $; names with a dot are those of dialects"},
		{"an alias to one of another section", "#‸a = 1\n// -----\n#b = 2", "b", "#b = 1\n// -----\n#b = 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := strings.Index(c.text, "‸")
			text := strings.Replace(c.text, "‸", "", 1)
			x := index(text)
			n, _, ok := x.At(at)
			if !ok {
				t.Fatalf("nothing is named at %d of %q", at, text)
			}
			edits, err := scope.Rename(x, n, c.to)
			got := apply(text, edits)
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func apply(text string, edits []diag.Edit) string {
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(text[at:e.Span.Start])
		b.WriteString(e.Text)
		at = e.Span.End
	}
	b.WriteString(text[at:])
	return b.String()
}

func TestOutline(t *testing.T) {
	src := source.New("test.mlir", `memref.global "private" @g : memref<4xf32>
module @m {
  func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y, %z = dm.kernel -> (tensor<4xf32>, tensor<4xf32>) {
      dm.yield %x, %x : tensor<4xf32>, tensor<4xf32>
    }
    return %y : tensor<4xf32>
  }
  module {
    llvm.func @h() {
      llvm.return
    }
  }
}
"func.func"() <{sym_name = "k"}> ({
}) : () -> ()
dm.mesh @pod {data = 2}
"dm.mesh"() <{axes = ["x"], sizes = [2], sym_name = "line"}> : () -> ()
`)
	var b strings.Builder
	var walk func(items []scope.Item, depth int)
	walk = func(items []scope.Item, depth int) {
		for _, it := range items {
			if it.Selection.Start < it.Span.Start || it.Selection.End > it.Span.End {
				t.Errorf("%s: the selection %v lies outside of %v", it.Name, it.Selection, it.Span)
			}
			line, _ := src.Human(it.Span.End)
			fmt.Fprintf(&b, "%s%s %s (%s) to line %d, selects %s\n", strings.Repeat("  ", depth), it.Kind, it.Name, it.Detail, line, src.Slice(it.Selection))
			walk(it.Children, depth+1)
		}
	}
	walk(scope.Outline(parse.File(src)), 0)
	want := `global @g (memref.global) to line 1, selects @g
module @m (module) to line 14, selects @m
  function @f (func.func) to line 8, selects @f
    kernel %y, %z (dm.kernel) to line 6, selects %y
  module module (module) to line 13, selects module
    function @h (llvm.func) to line 12, selects @h
function @k (func.func) to line 16, selects k
global @pod (dm.mesh) to line 17, selects @pod
global @line (dm.mesh) to line 18, selects line
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// Names in great numbers, all of them unresolved or defined twice, take time in
// proportion.
func TestManyFindings(t *testing.T) {
	const n = 100_000
	x := index("func.func @f() {\n" + strings.Repeat("  %x = \"t.op\"(%y)[^z] : (!t) -> i32\n", n) + "}\n")
	if want := 2 * n; len(x.Diags) != want {
		t.Errorf("%d findings, want %d", len(x.Diags), want)
	}
}

func BenchmarkBuild(b *testing.B) {
	var text strings.Builder
	text.WriteString("func.func @f(%x0: tensor<8x512xf16>) {\n")
	for i := range 100_000 {
		fmt.Fprintf(&text, "  %%x%d = dm.add %%x%d, %%x0 : tensor<8x512xf16>\n", i+1, i)
	}
	text.WriteString("  return\n}\n")
	f := parse.File(source.New("bench.mlir", text.String()))
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		scope.Build(f, calls)
	}
}
