package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A mutant replaces text of a function.
type mutant struct {
	operator  string
	file      string
	line      int
	from, to  int // offsets in the file
	old, text string
	function         // the outermost one
	rank      uint64 // orders the mutants of an operator by chance
}

type function struct {
	open, close int    // the offsets of its text without braces
	end         string // what follows this text, if more follows in the same body
	labels      []int  // the offsets behind the names of labels
}

// draw returns n mutants that compile, of all operators in turn.
func draw(pkg *packages.Package, n int, seed uint64) ([]mutant, error) {
	left := map[string][]mutant{}
	for i, file := range pkg.Syntax {
		if ast.IsGenerated(file) {
			continue
		}
		source, err := os.ReadFile(pkg.CompiledGoFiles[i])
		if err != nil {
			return nil, err
		}
		for _, m := range sites(pkg, file, string(source), seed) {
			left[m.operator] = append(left[m.operator], m)
		}
	}
	operators := make([]string, 0, len(left))
	for operator, ms := range left {
		operators = append(operators, operator)
		slices.SortStableFunc(ms, func(a, b mutant) int { return cmp.Compare(a.rank, b.rank) })
	}
	slices.Sort(operators)
	var drawn []mutant
	for len(drawn) < n && len(operators) > 0 {
		operators = slices.DeleteFunc(operators, func(o string) bool { return len(left[o]) == 0 })
		for _, operator := range operators {
			for len(left[operator]) > 0 {
				m := left[operator][0]
				left[operator] = left[operator][1:]
				if compiles(pkg, m) {
					drawn = append(drawn, m)
					break
				}
			}
		}
	}
	return drawn[:min(n, len(drawn))], nil
}

// swapped are the operators of which one is written for the other.
var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
	token.REM: token.QUO, token.AND: token.OR, token.OR: token.AND, token.SHL: token.SHR, token.SHR: token.SHL,
}

// sites are all mutants of a file.
func sites(pkg *packages.Package, file *ast.File, source string, seed uint64) []mutant {
	var found []mutant
	var in function
	offset := func(p token.Pos) int { return pkg.Fset.Position(p).Offset }
	text := func(n ast.Node) string { return source[offset(n.Pos()):offset(n.End())] }
	add := func(operator string, from, to token.Pos, replacement string) {
		at := pkg.Fset.Position(from)
		m := mutant{operator: operator, file: at.Filename, line: at.Line, from: at.Offset, to: offset(to), text: replacement, function: in}
		m.old = source[m.from:m.to]
		hash := fnv.New64a()
		fmt.Fprint(hash, seed, source[in.open:in.close], operator, m.from-in.open, replacement)
		m.rank = hash.Sum64()
		found = append(found, m)
	}
	replace := func(operator string, n ast.Node, replacement string) { add(operator, n.Pos(), n.End(), replacement) }
	var visit func(ast.Node) bool
	enter := func(kind *ast.FuncType, body *ast.BlockStmt) {
		in = function{open: offset(body.Lbrace) + 1, close: offset(body.Rbrace)}
		if kind.Results == nil {
			in.end = "return\n"
		}
		ast.Inspect(body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.LabeledStmt:
				in.labels = append(in.labels, offset(n.Label.End()))
			case *ast.BranchStmt:
				if n.Label != nil {
					in.labels = append(in.labels, offset(n.Label.End()))
				}
			}
			return true
		})
		ast.Inspect(body, visit)
		in = function{}
	}
	visit = func(n ast.Node) bool {
		if in.open == 0 {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body != nil {
					enter(n.Type, n.Body)
				}
				return false
			case *ast.FuncLit:
				enter(n.Type, n.Body)
				return false
			}
			return true
		}
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if to, ok := swapped[n.Op]; ok {
				operator := "arithmetic"
				switch n.Op {
				case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ:
					operator = "comparison"
				case token.LAND, token.LOR:
					operator = "logic"
					replace("operand", n, text(n.X))
					replace("operand", n, text(n.Y))
				}
				add(operator, n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to.String())
			}
		case *ast.BasicLit:
			if v, err := strconv.ParseInt(n.Value, 0, 32); n.Kind == token.INT && err == nil {
				replace("off by one", n, strconv.FormatInt(v+1, 10))
			}
		case *ast.IfStmt:
			if _, simple := ast.Unparen(n.Cond).(*ast.BinaryExpr); !simple {
				replace("negation", n.Cond, "!("+text(n.Cond)+")")
			}
			if n.Init == nil && n.Else == nil {
				replace("no if", n, "")
			}
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.BranchStmt:
			replace("no statement", n, "")
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				replace("no assignment", n, "")
			}
		case *ast.ReturnStmt:
			for _, r := range n.Results {
				if zero := zeroOf(pkg.TypesInfo, r, text(r)); zero != "" {
					replace("result", r, zero)
				}
			}
		case *ast.CaseClause:
			if n.List != nil {
				replace("no case", n, "")
			}
			if len(n.List) > 1 {
				add("no case", n.List[0].Pos(), n.List[1].Pos(), "")
			}
		case *ast.CallExpr:
			for i := range max(0, len(n.Args)-1) {
				a, b := n.Args[i], n.Args[i+1]
				if ta, tb := pkg.TypesInfo.TypeOf(a), pkg.TypesInfo.TypeOf(b); ta != nil && tb != nil && types.Identical(ta, tb) && text(a) != text(b) {
					add("swap", a.Pos(), b.End(), text(b)+", "+text(a))
				}
			}
		}
		return true
	}
	ast.Inspect(file, visit)
	return found
}

// zeroOf is another result than r: the zero value, the negation of a boolean; "" if r is that already.
func zeroOf(info *types.Info, r ast.Expr, text string) string {
	t := info.TypeOf(r)
	if t == nil {
		return ""
	}
	zero := ""
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Info()&types.IsBoolean != 0:
			return "!(" + text + ")"
		case u.Info()&types.IsString != 0:
			zero = `""`
		case u.Info()&types.IsNumeric != 0:
			zero = "0"
		}
	case *types.Pointer, *types.Slice, *types.Map, *types.Interface, *types.Signature, *types.Chan:
		zero = "nil"
	}
	if text == zero {
		return ""
	}
	return zero
}

// compiles reports whether the package with only this mutant passes the type checker.
func compiles(pkg *packages.Package, m mutant) bool {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return false
	}
	text := string(source)
	changed, err := parser.ParseFile(pkg.Fset, m.file, text[:m.from]+m.text+text[m.to:], parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	files := slices.Clone(pkg.Syntax)
	files[slices.Index(pkg.CompiledGoFiles, m.file)] = changed
	config := types.Config{Importer: imports(pkg.Imports)}
	_, err = config.Check(pkg.PkgPath, pkg.Fset, files, nil)
	return err == nil
}

type imports map[string]*packages.Package

func (m imports) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	return m[path].Types, nil
}

// planted is the text of a file with its mutants: a function begins with each mutated body under a condition. It is "" without
// mutants.
func planted(name string, mutants []mutant) (string, error) {
	type insertion struct {
		at   int
		text string
	}
	var insertions []insertion
	source, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	for i, m := range mutants {
		if m.file != name {
			continue
		}
		number, body, at := strconv.Itoa(i), "", m.open
		copied := func(to int) { // the labels of a function differ
			for _, label := range m.labels {
				if at < label && label <= to {
					body += string(source[at:label]) + "Of" + number
					at = label
				}
			}
			body += string(source[at:to])
		}
		copied(m.from)
		body += m.text
		at = m.to
		copied(m.close)
		insertions = append(insertions, insertion{m.open, fmt.Sprintf("if planted(%q) {%s\n%s}\n", number, body, m.end)})
	}
	if insertions == nil {
		return "", nil
	}
	slices.SortStableFunc(insertions, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
	var out strings.Builder
	at := 0
	for _, in := range insertions {
		out.Write(source[at:in.at])
		out.WriteString(in.text)
		at = in.at
	}
	out.Write(source[at:])
	return out.String(), nil
}
