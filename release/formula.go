package main

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed formula.rb.tmpl
var formulaText string

// formula writes a Homebrew formula that installs the archives from the
// repository's release, or nothing while the repository has no address.
func (r *release) formula(archives map[string]string) error {
	if r.Repository == "" {
		fmt.Println("no Homebrew formula: project.json has no repository")
		return nil
	}
	t, err := template.New("formula").Funcs(template.FuncMap{
		"quote": func(s string) string { // a Ruby string without interpolation
			return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
		},
		"list": func(names ...string) []string { return names },
		"url": func(name string) string {
			return r.Repository + "/releases/download/v" + r.version + "/" + name
		},
		"sum": func(name string) (string, error) {
			data, err := os.ReadFile(filepath.Join(r.out, name))
			return fmt.Sprintf("%x", sha256.Sum256(data)), err
		},
	}).Parse(formulaText)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := t.Execute(&b, map[string]any{
		"Summary": r.Summary, "Repository": r.Repository, "License": r.License, "Version": r.version, "Archives": archives,
	}); err != nil {
		return err
	}
	return r.write("dmir.rb", []byte(b.String()))
}
