package workspace

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The settings that the server reads are those that docs/EDITORS.md lists; the
// extension declares and lists them too, with the same defaults and in the same
// words, and a few of its own.
func TestSettingsAreDocumented(t *testing.T) {
	root := filepath.Join("..", "..")
	server := settingsTable(t, filepath.Join(root, "docs", "EDITORS.md"))
	extension := settingsTable(t, filepath.Join(root, "vscode-extension", "README.md"))
	declared := declaredSettings(t, filepath.Join(root, "vscode-extension", "package.json"))

	listed := map[string]string{}
	for name, row := range extension {
		listed[name] = row[0]
	}
	if diff := cmp.Diff(declared, listed); diff != "" {
		t.Errorf("the extension declares (-) and lists (+):\n%s", diff)
	}
	for _, own := range []string{"dmir.path", "dmir.hints.position", "dmir.stablehlo", "dmir.trace.server"} {
		if _, ok := extension[own]; !ok {
			t.Errorf("the extension lists no %s", own)
		}
		delete(extension, own)
	}
	if diff := cmp.Diff(server, extension); diff != "" {
		t.Errorf("EDITORS.md (-) and the extension's README (+) differ:\n%s", diff)
	}

	d := Defaults()
	for name, c := range map[string]struct {
		byDefault any
		other     string
	}{
		"dmir.target":         {d.Target, `"l40s"`},
		"dmir.bind":           {"{}", `{"n": 1}`},
		"dmir.hints.enabled":  {d.Hints, "false"},
		"dmir.lint.enabled":   {d.Lint, "false"},
		"dmir.lint.hints":     {d.LintHints, "false"},
		"dmir.lint.workspace": {d.LintWorkspace, "true"},
		"dmir.heat":           {d.Heat, `"time"`},
		"dmir.run.device":     {d.Device, `"reference"`},
		"dmir.run.seed":       {d.Seed, "7"},
		"dmir.plan.devices":   {d.PlanDevices, "64"},
		"dmir.plan.target":    {d.PlanTarget, `"dgx-h100"`},
	} {
		if got, want := server[name][0], or(fmt.Sprint(c.byDefault), "empty"); got != want {
			t.Errorf("%s is listed with the default %q, it is %s", name, got, want)
		}
		if set, errs := d.Decode(fmt.Appendf(nil, `{%q: %s}`, strings.TrimPrefix(name, "dmir."), c.other)); len(errs) > 0 || set.Equal(d) {
			t.Errorf("the server does not read %s: %v", name, errs)
		}
		delete(server, name)
	}
	if len(server) > 0 {
		t.Errorf("listed but not read: %v", server)
	}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// settingsTable is the default and the meaning of each setting in a Markdown table.
func settingsTable(t *testing.T, path string) map[string][2]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][2]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if name, ok := strings.CutPrefix(cells[0], "| `dmir."); ok && len(cells) == 3 {
			rows["dmir."+strings.Trim(name, "`")] = [2]string{strings.Trim(cells[1], "`"), strings.TrimSuffix(cells[2], " |")}
		}
	}
	return rows
}

// declaredSettings is the default of each setting that the extension declares.
func declaredSettings(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Contributes struct {
			Configuration struct {
				Properties map[string]struct {
					Default json.RawMessage `json:"default"`
				} `json:"properties"`
			} `json:"configuration"`
		} `json:"contributes"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{}
	for name, p := range manifest.Contributes.Configuration.Properties {
		defaults[name] = or(strings.Trim(string(p.Default), `"`), "empty")
	}
	return defaults
}
