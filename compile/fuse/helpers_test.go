package fuse_test

import (
	"os"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/pass"
	"dmir/dialect/print"
	"dmir/dialect/verify"
	"dmir/syntax/source"
)

func unit(t testing.TB, path, text string, bind map[string]int64) *pass.Unit {
	t.Helper()
	p := program.Load(source.New(path, text), program.Options{Bind: bind})
	for _, d := range p.Diags {
		t.Fatalf("%s: %s", path, d.Message)
	}
	m, _ := machine.Lookup("h200")
	return &pass.Unit{Module: p.Modules[0], Func: p.Modules[0].Funcs[0], Machine: m, Options: pass.Options{Bind: bind}}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pretty is u as text, which must be valid and stable under parsing and
// printing.
func pretty(t testing.TB, u *pass.Unit) string {
	t.Helper()
	for _, d := range verify.Module(u.Module) {
		t.Errorf("after fusing: %s %s", d.Code, d.Message)
	}
	text, err := print.Pretty(u.Module)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
