package parse

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/syntax/ast"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

const corpus = "../../../shared/conformance/mlir"

// corpusFiles are the texts of the conformance inputs.
func corpusFiles(t testing.TB) []*source.File {
	t.Helper()
	out, err := readCorpus()
	need.OK(t, err)
	return out
}

func readCorpus() (out []*source.File, err error) {
	err = filepath.WalkDir(corpus, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".mlir") {
			return err
		}
		b, err := os.ReadFile(path)
		out = append(out, source.New(strings.TrimPrefix(path, corpus+"/"), string(b)))
		return err
	})
	return out, err
}

// TestCorpus reads every conformance input: no diagnostic, no text outside of
// the tree, every value that is used is defined in its scope, and every type
// and dictionary of the ops that dmir reads in full has a tree.
func TestCorpus(t *testing.T) {
	forms := map[ast.Form]int{}
	uses := 0
	files := corpusFiles(t)
	for _, src := range files {
		f := File(src)
		where := func(off int) string {
			line, _ := src.Human(off)
			return src.Path + ":" + strings.TrimSpace(src.Line(line-1))
		}
		for _, d := range f.Diags {
			t.Errorf("%s: %s %s", where(d.Span.Start), d.Code, d.Message)
		}
		if msg := check(f); msg != "" {
			t.Errorf("%s: %s", src.Path, msg)
		}
		ast.Walk(f.Items, func(op *ast.Op) bool {
			forms[op.Form]++
			uses += len(op.Operands)
			expressions(t, src, op)
			return true
		})
		for _, u := range unresolved(f) {
			t.Errorf("%s: nothing defines %s", where(u.off), u.name)
		}
	}
	t.Logf("%d files, %d uses, ops by form: %v", len(files), uses, forms)
	if len(files) < 500 || uses < 10_000 || forms[ast.Generic] < 2_000 || forms[ast.Custom] < 4_000 {
		t.Errorf("too little was read: %d files, %d uses, %v", len(files), uses, forms)
	}
}

// expressions reads the types and attributes of an op. PDL writes values into
// dictionaries, which are no attributes.
func expressions(t *testing.T, src *source.File, op *ast.Op) {
	try := func(what string, r ast.Rel, read func(string) error) {
		if r.Empty() {
			return
		}
		if err := read(op.Text(src, r)); err != nil {
			t.Errorf("%s: %s of %s: %v: %s", src.Path, what, op.Name, err, op.Text(src, r))
		}
	}
	typ := func(s string) error { _, err := Type(s); return err }
	attr := func(s string) error { _, err := Attr(s); return err }
	sig := func(s string) error { _, err := Signature(s); return err }
	switch op.Form {
	case ast.Generic, ast.Pretty:
		try("the type", op.Sig, sig)
	case ast.TypeAlias:
		try("the type", op.Sig, typ)
	case ast.AttrAlias:
		try("the value", op.Lead, attr)
	}
	if !strings.HasPrefix(op.Name, "pdl.") {
		try("the dictionary", op.Attrs, attr)
	}
	if p := op.Props; !p.Empty() {
		try("the properties", ast.Rel{Start: p.Start + 1, End: p.End - 1}, attr)
	}
	args := func(list []ast.BlockArg) {
		for _, a := range list {
			try("an argument's type", a.Type, typ)
			try("an argument's dictionary", a.Attrs, attr)
		}
	}
	args(op.Defs)
	if op.Func != nil {
		args(op.Func.Args)
		args(op.Func.Results)
	}
	for _, r := range op.Regions {
		for _, b := range r.Blocks {
			args(b.Args)
		}
	}
}

type use struct {
	name string
	off  int
}

// unresolved are the uses that no definition in an enclosing region explains.
func unresolved(f *ast.File) []use {
	var out []use
	var ops func(ops []*ast.Op, scope map[string]int)
	region := func(op *ast.Op, r *ast.Region, scope map[string]int) {
		var names []string
		add := func(name string) {
			scope[name]++
			names = append(names, name)
		}
		for _, d := range op.Defs {
			add(d.Name)
		}
		for _, b := range r.Blocks {
			for _, a := range b.Args {
				add(a.Name)
			}
			for _, o := range b.Ops {
				for _, x := range o.Results {
					add(x.Name)
				}
			}
		}
		for _, b := range r.Blocks {
			ops(b.Ops, scope)
		}
		for _, n := range names {
			scope[n]--
		}
	}
	ops = func(list []*ast.Op, scope map[string]int) {
		for _, op := range list {
			own := map[string]bool{} // an op's own definitions: scf.while's are used in its type
			for _, d := range op.Defs {
				own[d.Name] = true
			}
			for _, u := range op.Operands {
				if scope[u.Name] == 0 && !own[u.Name] {
					out = append(out, use{u.Name, op.Off + int(u.Span.Start)})
				}
			}
			for _, r := range op.Regions {
				region(op, r, scope)
			}
		}
	}
	top := map[string]int{}
	for _, op := range f.Items {
		for _, x := range op.Results {
			top[x.Name]++
		}
	}
	ops(f.Items, top)
	return out
}
