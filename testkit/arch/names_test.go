package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dmir/dialect/op"
	"dmir/testkit/sources"
)

// mayName are the packages and files that may name an op, or an attribute of the dialect's prefix, by a literal, and why.
// All others use the registry: an op's entry for its properties, and the constants
// of package op for the ops that give a program its structure and for attributes.
var mayName = map[string]string{
	"analysis/lint/":                "rules look for patterns",
	"bench/":                        "measurements edit and search texts",
	"compile/kernel/library_ops.go": "library kernels are chosen by op",
	"compile/rates/":                "measures by texts of programs",
	"compile/interp/":               "executors are keyed by op",
	"compile/kernel/eval.go":        "executors of single elements, keyed by op",
	"compile/simplify/":             "rewrites look for patterns and build ops",
	"dialect/pattern/":              "patterns of ops, for rewrites and lint",
	"dialect/verify/complete.go":    "completes the open size of a reshape",
	"dialect/attention/":            "attention is recognised by its pattern",
	"dialect/partition/exchange":    "algorithms are chosen by op",
	"dialect/raise/":                "composites are guessed from the ops that they end in",
	"dialect/autodiff/":             "code that builds gradients creates ops",
	"dialect/ir/marks.go":           "attributes that new ops take over, below the registry",
	"dialect/lower/":                "the short names of the text become full ones",
	"dialect/op/":                   "the registry",
	"dialect/partition/":            "algorithms of single ops for many devices, as an executor's",
	"dialect/stablehlo/":            "what is imported is built of ops, and patterns of regions get their names",
	"dialect/onnx/generalize.go":    "constants and slices of open size become other ops",
	"editors/":                      "the words of the grammar",
	"testkit/randprog/":             "texts of programs are searched",
	"syntax/":                       "the grammar of functions and modules, below the registry",
}

// named are the literals of a file that are names of ops.
func named(t *testing.T, path string) (at []token.Position, names []string) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		s, err := strconv.Unquote(lit.Value)
		if err == nil && isName(s) {
			at, names = append(at, set.Position(lit.Pos())), append(names, s)
		}
		return true
	})
	return at, names
}

func isName(s string) bool {
	switch s {
	case op.Module, op.Func, op.Call, op.Return:
		return true
	}
	return op.Lookup(s) != nil || op.LookupAttr(s) != nil
}

func TestOpsAreNamedInTheRegistry(t *testing.T) {
	root := filepath.Join("..", "..")
	used := map[string]bool{}
	sources.Each(t, root, func(path string) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		name = filepath.ToSlash(name)
		places, names := named(t, path)
	literals:
		for i, s := range names {
			for where := range mayName {
				if strings.HasPrefix(name, where) {
					used[where] = true
					continue literals
				}
			}
			t.Errorf("%s:%d names %s: ask its entry in dialect/op", name, places[i].Line, s)
		}
	})
	for where := range mayName {
		if !used[where] {
			t.Errorf("%s names no op any more: take it off the list", where)
		}
	}
}
