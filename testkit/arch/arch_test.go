// Package arch tests the architecture: which package may import which.
package arch

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers lists the layers from the bottom up. A package imports its own layer and
// those below it, never one above.
var layers = []string{"base", "syntax", "dialect", "analysis", "gpu", "compile", "lsp", "cli"}

// forbidden is what packages, and those below them in the tree, must not import
// besides higher layers; docs/ARCHITECTURE.md explains why.
var forbidden = map[string][]string{
	"dmir/syntax":               {"os/exec"},
	"dmir/syntax/source":        {"dmir/"},
	"dmir/syntax/ast":           {"dmir/syntax/parse"},
	"dmir/dialect":              {"os/exec"},
	"dmir/dialect/dim":          {"dmir/"},
	"dmir/dialect/types":        {"dmir/dialect/ir", "dmir/dialect/op"},
	"dmir/dialect/ir":           {"dmir/dialect/op", "dmir/syntax/ast", "dmir/syntax/parse"},
	"dmir/analysis":             {"os/exec"},
	"dmir/analysis/machine":     {"dmir/dialect/ir", "dmir/dialect/op"},
	"dmir/analysis/network":     {"dmir/dialect", "dmir/syntax", "dmir/analysis/cost", "dmir/analysis/program"},
	"dmir/analysis/memory":      {"dmir/analysis/cost"},
	"dmir/analysis/program":     {"dmir/analysis/lint"},
	"dmir/analysis/graph":       {"dmir/analysis/report", "dmir/analysis/units"},
	"dmir/analysis/diff":        {"dmir/analysis/report"},
	"dmir/analysis/report":      {"net", "net/http"},
	"dmir/analysis/report/page": {"dmir/"},
	"dmir/gpu":                  {"dmir/syntax", "dmir/dialect", "dmir/analysis"},
	"dmir/gpu/artifact":         {"os/exec"},
	"dmir/compile":              {"os/exec", "dmir/dialect/origin", "dmir/syntax/ast"},
	"dmir/compile/kernel":       {"dmir/gpu", "dmir/analysis"},
	"dmir/compile/tensor":       {"dmir/dialect/ir", "dmir/dialect/op"},
	"dmir/compile/interp":       {"dmir/analysis"},
	"dmir/lsp/feature":          {"os/exec"},
	"dmir/lsp/loopback":         {"dmir/", "os/exec"},
	"dmir/lsp/workspace":        {"os/exec"},
	"dmir/lsp/connection":       {"dmir/syntax", "dmir/dialect", "dmir/analysis", "dmir/gpu", "dmir/compile", "dmir/lsp"},
	"dmir/lsp/session":          {"dmir/compile", "dmir/analysis/cost", "dmir/dialect", "dmir/lsp/job", "dmir/lsp/page", "dmir/lsp/diagnostics"},
	"dmir/lsp/job":              {"dmir/compile", "dmir/analysis/cost", "dmir/dialect", "dmir/lsp/page", "dmir/lsp/diagnostics"},
	"dmir/lsp/page":             {"dmir/compile", "dmir/analysis/cost", "dmir/dialect", "dmir/lsp/diagnostics"},
	"dmir/lsp/diagnostics":      {"dmir/compile", "dmir/analysis/cost", "dmir/dialect", "dmir/lsp/page"},
	"dmir/lsp/server":           {"dmir/compile", "dmir/analysis/cost", "dmir/dialect"},
}

// backEnds are the packages of one target, and neutral those that do not
// depend on them, even indirectly: a second target needs no change there.
var (
	backEnds = []string{"dmir/compile/cuda", "dmir/compile/llvm", "dmir/compile/target/all", "dmir/gpu/cuda", "dmir/gpu/device/nvidia", "dmir/gpu/emulator", "dmir/gpu/native", "dmir/gpu/nvrtc", "dmir/gpu/prelude", "dmir/gpu/sass"}
	neutral  = []string{"dmir/gpu/artifact", "dmir/gpu/device", "dmir/compile/assemble", "dmir/compile/pass", "dmir/compile/pipeline", "dmir/compile/schedule", "dmir/compile/target", "dmir/compile/driver", "dmir/lsp/feature", "dmir/lsp/server", "dmir/lsp/worker", "dmir/cli"}
)

// protocol are the packages that use the types of the Language Server Protocol.
var protocol = []string{
	"dmir/lsp/connection", "dmir/lsp/session", "dmir/lsp/job", "dmir/lsp/page", "dmir/lsp/diagnostics", "dmir/lsp/server",
}

func floor(pkg string) int {
	for i, l := range layers {
		if pkg == "dmir/"+l || strings.HasPrefix(pkg, "dmir/"+l+"/") {
			return i
		}
	}
	return -1
}

func TestImportsPointDown(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "dmir/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := 0
	imported := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		pkg, imports := f[0], f[1:]
		imported[pkg] = imports
		if floor(pkg) >= 0 {
			packages++
		}
		for _, imp := range imports {
			if here, there := floor(pkg), floor(imp); here >= 0 && there > here {
				t.Errorf("%s imports %s, which lies above it", pkg, imp)
			}
			if imp == "C" {
				t.Errorf("%s uses cgo; the module must build with Go alone", pkg)
			}
			for prefix, bad := range forbidden {
				if pkg != prefix && !strings.HasPrefix(pkg, prefix+"/") {
					continue
				}
				for _, b := range bad {
					if imp == b || strings.HasPrefix(imp, strings.TrimSuffix(b, "/")+"/") {
						t.Errorf("%s must not know %s", pkg, imp)
					}
				}
			}
			if strings.HasPrefix(imp, "go.lsp.dev/") && !slices.Contains(protocol, pkg) {
				t.Errorf("%s imports %s: only the packages of the server know LSP types", pkg, imp)
			}
			if slices.Contains(protocol, imp) && !slices.Contains(protocol, pkg) && pkg != "dmir/cli" && !strings.HasPrefix(pkg, "dmir/bench/") {
				t.Errorf("%s imports %s, which is a part of the server", pkg, imp)
			}
		}
	}
	for _, pkg := range neutral {
		if imported[pkg] == nil {
			t.Errorf("there is no package %s", pkg)
		}
		if way := reaches(imported, pkg, backEnds, map[string]bool{}); way != "" {
			t.Errorf("%s must reach no target: %s", pkg, way)
		}
	}
	var forTests []string
	for pkg := range imported {
		if strings.HasPrefix(pkg, "dmir/testkit/") {
			forTests = append(forTests, pkg)
		}
	}
	if way := reaches(imported, "dmir", forTests, map[string]bool{}); way != "" {
		t.Errorf("the binary links what is for tests: %s", way)
	}
	if packages < len(layers) {
		t.Fatalf("saw %d packages on %d floors: the list of floors is out of date", packages, len(layers))
	}
}

// reaches is the chain of imports from pkg to one of targets; "" where there is none.
func reaches(imported map[string][]string, pkg string, targets []string, seen map[string]bool) string {
	if seen[pkg] {
		return ""
	}
	seen[pkg] = true
	for _, imp := range imported[pkg] {
		if slices.Contains(targets, imp) {
			return pkg + " imports " + imp
		}
		if way := reaches(imported, imp, targets, seen); way != "" {
			return pkg + " imports " + imp + ", " + way
		}
	}
	return ""
}
