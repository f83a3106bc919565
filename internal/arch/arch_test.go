// Package arch holds the rules of the house: which package may know which.
package arch

import (
	"os/exec"
	"strings"
	"testing"
)

// layers lists the floors from the bottom up. A package imports its own floor
// and those below it, never one above.
var layers = []string{"syntax", "dialect", "analysis", "compile", "lsp", "internal/cli"}

// exceptions to "up to its own floor": importer prefix -> forbidden prefixes beyond the floors.
var forbidden = map[string][]string{
	"dmir/syntax":        {"os/exec"},
	"dmir/dialect":       {"os/exec"},
	"dmir/analysis":      {"os/exec", "dmir/compile"},
	"dmir/compile":       {"os/exec"},
	"dmir/gpu":           {"dmir/dialect", "dmir/syntax", "dmir/analysis", "os/exec"},
	"dmir/lsp/feature":   {"go.lsp.dev/", "os/exec"},
	"dmir/lsp/workspace": {"go.lsp.dev/", "os/exec"},
	"dmir/lsp/worker":    {"go.lsp.dev/"},
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
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		pkg, imports := f[0], f[1:]
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
					if imp == strings.TrimSuffix(b, "/") || strings.HasPrefix(imp, b) {
						t.Errorf("%s must not know %s", pkg, imp)
					}
				}
			}
			if strings.HasPrefix(imp, "go.lsp.dev/") && pkg != "dmir/lsp/server" && !strings.HasPrefix(pkg, "dmir/lsp/server/") {
				t.Errorf("%s imports %s: only lsp/server knows LSP types", pkg, imp)
			}
		}
	}
	if packages < len(layers) {
		t.Fatalf("saw %d packages on %d floors: the list of floors is out of date", packages, len(layers))
	}
}
