package program

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"dmir/syntax/parse"
	"dmir/syntax/source"

	"github.com/google/go-cmp/cmp"
)

const pair = `func.func @a(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @b(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @b(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dm.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
`

const trainedPair = `func.func private @loss(%x: tensor<4xf32>) -> tensor<f32> {
  %y = dm.exp %x : tensor<4xf32>
  %l = dm.reduce add %y : (tensor<4xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %l, %dx = dm.grad @loss %x : (tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %dx : tensor<4xf32>
}
`

const sizedPair = `func.func private @inner(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = dm.add %x, %x : tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
func.func private @outer(%x: tensor<?x?xf32, #dm.at<dims = [r, 2*c]>>) -> tensor<?x?xf32> {
  %y = func.call @inner(%x) : (tensor<?x?xf32, #dm.at<dims = [r, 2*c]>>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %a = func.call @outer(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %b = func.call @inner(%a) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %b : tensor<4x6xf32>
}
`

// Edits that a program must follow as loading finds them, or not at all.
func TestSpliceCases(t *testing.T) {
	generic := `"func.func"() ({
^bb0(%a: tensor<4xf32>):
  %0 = dm.relu %a : tensor<4xf32>
  "func.return"(%0) : (tensor<4xf32>) -> ()
}) {sym_name = "gen", function_type = (tensor<4xf32>) -> tensor<4xf32>} : () -> ()
`
	for name, c := range map[string]struct{ text, old, new string }{
		"a function calls itself":              {pair, "call @b", "call @a"},
		"something stands before a function":   {strings.Replace(pair, "func.call @b(%x)", `"foo.op"(%x)`, 1), "func.func @b", "loc(\"q\")\nfunc.func @b"},
		"a name behind the region moves":       {generic, "dm.relu", "dm.tanhx"},
		"a symbol is defined by a string":      {pair, "  return %0 : tensor<4xf32>\n}\nfunc", "  \"foo.op\"() {sym_name = \"b\"} : () -> ()\n  return %0 : tensor<4xf32>\n}\nfunc"},
		"what is left is a module":             {"module {\n" + pair + "}\nfunc.func @c() {\n  return\n}\n", "func.func @c() {\n  return\n}\n", ""},
		"a function goes that another calls":   {pair, pair[strings.Index(pair, "func.func @b"):], ""},
		"an op loses its derivative":           {trainedPair, "dm.exp", "other.op"},
		"an op is none for the sizes of calls": {sizedPair, "dm.add %x, %x", "dm.matmul %x, %x"},
		"an op is one for the sizes of calls":  {strings.Replace(sizedPair, "dm.add %x, %x", "dm.matmul %x, %x", 1), "dm.matmul %x, %x", "dm.add %x, %x"},
		"a call returns another size":          {sizedPair, "@inner(%a) : (tensor<4x6xf32>) -> tensor<4x6xf32>", "@inner(%a) : (tensor<4x6xf32>) -> tensor<4x7xf32>"},
		"a call that is wrong goes":            {strings.Replace(sizedPair, "dm.add %x, %x", "dm.matmul %x, %x", 1), "  %b = func.call @inner(%a) : (tensor<4x6xf32>) -> tensor<4x6xf32>\n", ""},
		"an op of a function between changes":  {sizedPair, "%y = func.call @inner(%x)", "%z = dm.matmul %x, %x : (tensor<?x?xf32, #dm.at<dims = [r, 2*c]>>, tensor<?x?xf32, #dm.at<dims = [r, 2*c]>>) -> tensor<?x?xf32>\n  %y = func.call @inner(%x)"},
		"a line before a call that is wrong":   {strings.Replace(sizedPair, "dm.add %x, %x", "dm.matmul %x, %x", 1), "  %a = func.call", "  // 😀\n  %a = func.call"},
		"a gradient is taken":                  {strings.Replace(trainedPair, "dm.grad @loss", "dm.grad @none", 1), "@none", "@loss"},
		"a number is an operand":               {pair, "dm.exp %x", "dm.mul %x, 2.0"},
		"a constant has its name":              {strings.Replace(pair, "dm.exp %x", "dm.mul %x, 2.0", 1), "  %0 = func.call", "  %c7 = dm.exp %x : tensor<4xf32>\n  %0 = func.call"},
		"a function comes that another called": {strings.Replace(pair, "func.func @b", "func.func @c", 1), "func.func @c", "func.func @b"},
	} {
		t.Run(name, func(t *testing.T) {
			at := strings.Index(c.text, c.old)
			src := source.New("x.dmir", c.text)
			p := Load(src, Options{})
			next := src.Edit(at, at+len(c.old), c.new)
			if !p.Splice(next, parse.Change{Start: at, End: at + len(c.old), Length: len(c.new)}) {
				return
			}
			q := Load(source.New("x.dmir", next.Text()), Options{})
			want, got := known(t, q), known(t, p)
			want["ops"], got["ops"] = places(q), places(p)
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// bound gives a size to a symbol that stands in a body alone; an attribute is misspelt.
const bound = `func.func @f(%x: tensor<?xf32, #dm.at<dims = [n]>> {dm.stdev = 0.5}) -> tensor<?xf32, #dm.at<dims = [n]>> attributes {dm.bind = {k = 4}} {
  %0 = dm.exp %x : tensor<?xf32, #dm.at<dims = [n]>>
  %1 = "other.op"(%0) : (tensor<?xf32, #dm.at<dims = [n]>>) -> tensor<?xf32, #dm.at<dims = [k]>>
  return %0 : tensor<?xf32, #dm.at<dims = [n]>>
}
`

// What a mesh means is asked wherever it is named. An edit of one sharding is
// followed; one of the mesh need not be.
func TestSpliceShardings(t *testing.T) {
	behind := sharded[strings.Index(sharded, "\n")+1:] + "dm.mesh @pod {data = 4, model = 2}\n"
	generic := strings.Replace(sharded, "dm.mesh @pod {data = 4, model = 2}", `"dm.mesh"() <{sym_name = "pod", axes = ["data", "model"], sizes = [4, 2]}> : () -> ()`, 1)
	for name, c := range map[string]struct {
		text, old, new string
		follow         bool // it must be
		wrong          bool // there is an error afterwards
	}{
		"the size of an axis":               {sharded, "data = 4", "data = 2", false, true},
		"the size of one that all divide":   {sharded, "model = 2", "model = 4", false, false},
		"the name of an axis":               {sharded, "model = 2", "mode = 2", false, true},
		"an axis more":                      {sharded, "{data", "{pipe = 3, data", false, false},
		"an axis fewer":                     {sharded, ", model = 2", "", false, true},
		"the name of the mesh":              {sharded, "@pod", "@pad", false, true},
		"the mesh goes":                     {sharded, "dm.mesh @pod {data = 4, model = 2}\n", "", false, true},
		"the mesh comes":                    {sharded[strings.Index(sharded, "\n")+1:], "func.func @device", "dm.mesh @pod {data = 4, model = 2}\nfunc.func @device", false, false},
		"a mesh behind its uses":            {behind, "{data = 4", "{data = 3", false, true},
		"a mesh in generic form":            {generic, "[4, 2]", "[5, 2]", false, true},
		"a second mesh of the name":         {sharded, "func.func @device", "dm.mesh @pod {x = 1}\nfunc.func @device", false, true},
		"a mesh in a section of its own":    {sharded, "func.func @device", "// -----\nfunc.func @device", false, true},
		"an axis in the type of a result":   {sharded, "-> tensor<8x4xf32, #dm.at<split = @pod[{data:(1)2}, {model}]>>", "-> tensor<8x4xf32, #dm.at<split = @pod[{data:(1)2}, {modul}]>>", true, true},
		"a sharding comes":                  {sharded, "(tensor<8x4xf32, #dm.at<split = @pod[{data:(1)2}, {model}]>>) -> tensor<8x4xf32>", "(tensor<8x4xf32, #dm.at<split = @pod[{data:(1)2}, {model}]>>) -> tensor<8x4xf32, #dm.at<split = @pod[{}, {data}]>>", true, true},
		"a sharding in the signature":       {sharded, "global(%x: tensor<8x4xf32, #dm.at<split = @pod[{data}", "global(%x: tensor<8x4xf32, #dm.at<split = @pod[{dato}", true, true},
		"the whole of an argument":          {sharded, "dm.global = tensor<8x4xf32", "dm.global = tensor<12x4xf32", true, true},
		"an axis of a collective":           {sharded, `axes = ["model"]`, `axes = ["modul"]`, true, true},
		"a collective over an axis more":    {sharded, `axes = ["data"]`, `axes = ["data", "model"]`, true, true},
		"the mesh of a function goes":       {sharded, " attributes {dm.mesh = @pod}", "", true, true},
		"an attribute of an op goes":        {stated, " {dm.sharding = #dm.at<split = @pod[{data}, {model}]>}", "", true, false},
		"an attribute of an op comes":       {stated, "dm.exp %1", "dm.exp %1 {dm.sharding = #dm.at<split = @pod[{model}, {data}]>}", true, false},
		"an attribute of an op is another":  {stated, "[{data}, {model}]", "[{model}, {data}]", true, false},
		"an attribute of an op is wrong":    {stated, "[{data}, {model}]", "[{data}]", true, true},
		"an attribute of an argument goes":  {stated, " {dm.sharding = #dm.at<split = @pod[{data}, {}]>}", "", true, false},
		"an attribute of an argument":       {stated, "[{data}, {}]", "[{}, {data}]", true, false},
		"an attribute of a tuple":           {stated, "[{}, {model}]>, unit", "[{model}, {}]>, #dm.at<split = @pod[{data}]>", true, false},
		"an attribute of a tuple is wrong":  {stated, ">, unit", ">", true, true},
		"an attribute of a result":          {stated, "[{}, {data}]", "[{}, {dato}]", true, true},
		"a mesh that attributes name":       {stated, "@pod {", "@pad {", false, true},
		"a stage comes":                     {stated, "dm.exp %1", "dm.exp %1 {dm.stage = 0}", true, false},
		"a stage before another":            {strings.Replace(stated, "dm.exp %1", "dm.exp %1 {dm.stage = 1}", 1), "%0, %b {", "%0, %b {dm.stage = 2, ", true, true},
		"the mesh of a function is another": {sharded, "{dm.mesh = @pod}", "{dm.mesh = @pad}", true, true},
		"an attribute of an op is misspelt": {stated, "dm.exp %1", "dm.exp %1 {dm.stag = 0}", true, true},
		"an attribute of the wrong place":   {stated, "dm.exp %1", "dm.exp %1 {dm.state = 0}", true, true},
		"a misspelt attribute is mended":    {strings.Replace(stated, "dm.exp %1", "dm.exp %1 {dm.stag = 0}", 1), "dm.stag ", "dm.stage ", true, false},
		"one of an argument is misspelt":    {stated, "{dm.sharding = #dm.at<split = @pod[{data}, {}]>}", "{dm.shard = 1}", true, true},
		"one of an argument is mended":      {bound, "dm.stdev", "dm.stddev", true, false},
		"a bound size leaves the body":      {strings.Replace(bound, "dm.stdev", "dm.stddev", 1), "[k]", "[m]", true, true},
		"a bound size comes to the body":    {strings.Replace(strings.Replace(bound, "dm.stdev", "dm.stddev", 1), "[k]", "[m]", 1), "[m]", "[k]", true, false},
		"a bound size is renamed":           {strings.Replace(bound, "dm.stdev", "dm.stddev", 1), "{k = 4}", "{kk = 4}", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			at := strings.Index(c.text, c.old)
			src := source.New("x.dmir", c.text)
			p := Load(src, Options{})
			next := src.Edit(at, at+len(c.old), c.new)
			q := Load(source.New("x.dmir", next.Text()), Options{})
			if q.HasErrors() != c.wrong {
				t.Errorf("errors: %t", !c.wrong)
			}
			if !p.Splice(next, parse.Change{Start: at, End: at + len(c.old), Length: len(c.new)}) {
				if c.follow {
					t.Error("the change is not followed")
				}
				return
			}
			want, got := known(t, q), known(t, p)
			want["ops"], got["ops"] = places(q), places(p)
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// places is where the ops of the modules are.
func places(p *Program) []string {
	var out []string
	for _, m := range p.Modules {
		for _, o := range m.Ops {
			out = append(out, fmt.Sprint(o.Name, o.Span, o.Bad))
		}
	}
	return out
}

// A program that follows edits holds what its text needs, and nothing of what
// the text was before.
func TestSpliceKeepsNothing(t *testing.T) {
	chain := func(name string, n int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "func.func @%s(%%x: tensor<8x4xf32>) -> tensor<8x4xf32> {\n  %%0 = dm.exp %%x : tensor<8x4xf32>\n", name)
		for i := 1; i < n; i++ {
			fmt.Fprintf(&b, "  %%%d = dm.exp %%%d : tensor<8x4xf32>\n", i, i-1)
		}
		fmt.Fprintf(&b, "  return %%%d : tensor<8x4xf32>\n}\n", n-1)
		return b.String()
	}
	held := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for name, c := range map[string]struct {
		text, at string
		edits    int
	}{
		"heads":                    {chain("a", 50) + chain("b", 100) + chain("c", 50), "@b", 200},
		"bodies":                   {chain("a", 50) + chain("b", 100) + chain("c", 50), "dm.exp %50", 2000},
		"heads beside much":        {chain("a", 5) + "func.func private @b()\n" + chain("c", 3000), "@b", 200},
		"the same op, over and on": {chain("b", 3), "dm.exp %1", 2000},
	} {
		t.Run(name, func(t *testing.T) {
			at := strings.Index(c.text, c.at) + len(c.at)
			src := source.New("x.dmir", c.text)
			p := Load(src, Options{})
			before := held()
			followed := 0
			for i := range c.edits {
				end, in := at, "0"
				if i%2 == 1 {
					end, in = at+1, ""
				}
				next := src.Edit(at, end, in)
				if p.Splice(next, parse.Change{Start: at, End: end, Length: len(in)}) {
					followed++
				} else {
					p = Load(next, Options{})
				}
				src = next
			}
			if more := held() - before; more > 3<<20 || followed < c.edits/2 {
				t.Errorf("%d of %d edits were followed, and %d kB more are held", followed, c.edits, more>>10)
			}
			runtime.KeepAlive(p)
		})
	}
}
