package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// A source is where figures were published.
type source struct {
	ID       string `toml:"id"`
	Title    string `toml:"title"`
	URL      string `toml:"url"`
	About    string `toml:"about"`              // what it states of clocks, caches and how it measured
	Isolated bool   `toml:"isolated,omitempty"` // each kernel was timed by itself, between two events
	Out      string `toml:"left_out,omitempty"` // why its rows are no figures of what the machine reaches
}

// A row is a published figure.
type row struct {
	Source  string         `toml:"source"`
	Machine string         `toml:"machine"`
	Kind    string         `toml:"kind"`
	Params  map[string]any `toml:"params"`
	Value   float64        `toml:"value"`
	Unit    string         `toml:"unit"` // "TFLOP/s", "GB/s", "us" or "ms"
	Counts  string         `toml:"counts,omitempty"`
	Note    string         `toml:"note,omitempty"`
	Out     string         `toml:"left_out,omitempty"`

	isolated bool // as the source
}

// name is the row's name: all that it is a figure of.
func (r *row) name() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(r.Params)) {
		parts = append(parts, fmt.Sprintf("%s=%v", k, r.Params[k]))
	}
	return r.Source + " " + r.Machine + " " + r.Kind + " " + strings.Join(parts, " ")
}

// same is what rows have in common that measure the same work on the same machine.
func (r *row) same() string {
	x := *r
	x.Source = ""
	return x.name()
}

// held reports whether the row is in the half that errors are stated for: constants are
// fitted to the other half.
func (r *row) held() bool {
	sum := sha256.Sum256([]byte(r.name()))
	return hex.EncodeToString(sum[:1])[0]&1 == 1
}

func (r *row) integer(key string, otherwise int64) int64 {
	switch x := r.Params[key].(type) {
	case int64:
		return x
	case float64:
		return int64(x)
	}
	return otherwise
}

func (r *row) text(key, otherwise string) string {
	if s, ok := r.Params[key].(string); ok {
		return s
	}
	return otherwise
}

func (r *row) flag(key string) bool {
	b, _ := r.Params[key].(bool)
	return b
}

// file is a file of published figures.
type file struct {
	Sources []source `toml:"source"`
	Rows    []*row   `toml:"row"`
}

// load reads the figures of all files of a folder.
func load(folder string) (*file, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.toml"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("no figures in %s", folder)
	}
	all := &file{}
	seen := map[string]*source{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var f file
		if err := toml.Unmarshal(text, &f); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i := range f.Sources {
			seen[f.Sources[i].ID] = &f.Sources[i]
		}
		for _, r := range f.Rows {
			s := seen[r.Source]
			if s == nil {
				return nil, fmt.Errorf("%s: a row names source %q, which there is not", name, r.Source)
			}
			r.isolated = s.Isolated
			if r.Out == "" {
				r.Out = s.Out
			}
		}
		all.Sources = append(all.Sources, f.Sources...)
		all.Rows = append(all.Rows, f.Rows...)
	}
	return all, nil
}
