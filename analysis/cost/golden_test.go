package cost_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/compile/planned"
	_ "dmir/compile/target/all"
	"dmir/dialect/ir"
)

// Each archive in testdata is a program and the expected text of its cost. The
// comment at its head describes its purpose; lines "target NAME", "bind n=512",
// "width 80", "color", "measured NS", "by ORDER" and "compiled" in it set the options.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { golden(t, path) })
	}
}

func golden(t *testing.T, path string) {
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	opts := program.Options{Target: lookup(t, "h200"), Bind: map[string]int64{}}
	var table cost.TableOptions
	var p *program.Program
	var measured int64
	for line := range strings.Lines(string(a.Comment)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseInt(rest, 10, 64)
		switch word {
		case "target":
			opts.Target = lookup(t, rest)
		case "bind":
			name, size, _ := strings.Cut(rest, "=")
			if opts.Bind[name], err = strconv.ParseInt(size, 10, 64); err != nil {
				t.Fatal(err)
			}
		case "width":
			table.Width = int(n)
		case "color":
			table.Color = true
		case "measured":
			measured = n
		case "by":
			table.Order.By = rest
		case "compiled":
			table.Compiled = func(f *cost.Func) (cost.Figures, error) { return planned.Figures(t.Context(), p, f.Func, p.Target) }
		}
	}
	var changed bool
	for i := range a.Files {
		f := &a.Files[i]
		var got bytes.Buffer
		switch filepath.Ext(f.Name) {
		case ".dmir":
			p = load(t, f.Name, string(f.Data), opts)
			continue
		case ".table":
			if measured > 0 {
				table.Device = "reference"
				table.Measured = map[*ir.Op]int64{}
				for _, e := range p.Funcs[0].Entries {
					table.Measured[e.Op] = measured
				}
			}
			if err := cost.Table(&got, p.Target, p.Funcs, table); err != nil {
				t.Fatal(err)
			}
		case ".json":
			enc := json.NewEncoder(&got)
			enc.SetIndent("", "  ")
			if err := enc.Encode(cost.JSON(p.Target, p.Funcs)); err != nil {
				t.Fatal(err)
			}
		}
		text := strings.ReplaceAll(got.String(), "\x1b", "␛")
		if text == string(f.Data) {
			continue
		}
		if *update {
			f.Data, changed = []byte(text), true
			continue
		}
		t.Errorf("%s: got\n%s\nwant\n%s", f.Name, text, f.Data)
	}
	if changed {
		if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
