// Package config reads dmir.toml: the machine to predict for, sizes of
// dimension symbols, the lint rules to apply and machines of one's own. The
// file that holds for a program is the nearest one, in its directory or above;
// files are not merged. Everything wrong with it is a diagnostic at its place.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"dmir/analysis/machine"
	"dmir/base/regular"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// FileName is the name of the configuration file.
const FileName = "dmir.toml"

// Precisions are how products of f32 may be computed.
var Precisions = []string{"f32", "tf32"}

// Config is the content of a dmir.toml. The zero value is what holds without one.
type Config struct {
	Path   string           // of the file, "" where there is none
	Target string           // name of the machine to predict for; "" is machine.Default
	Bind   map[string]int64 // sizes of dimension symbols
	// F32Products is how products of f32 that state no precision are computed, "f32" or "tf32"; "" is in f32.
	F32Products string
	Lint        Lint
	Plan        Plan
	Machines    map[string]*machine.Machine // the user's own, by lower-case name
}

// Plan is what dmir plan and the editor's lens plan for, unless they are told otherwise. What is
// absent they take from the program and the target.
type Plan struct {
	Devices int           `toml:"devices" doc:"The number of devices that a training step is divided over; absent, those of the mesh in the program"`
	Target  string        `toml:"target" names:"machine" doc:"The cluster that a plan is for; absent, the target"`
	Memory  machine.Bytes `toml:"memory" doc:"The memory of a device that a plan may use; absent, all of it"`
}

// Lint selects rules by code, name or the beginning of a code; Ignore wins. Hints
// shows findings about what the compiler does by itself everywhere, or nowhere; nil
// leaves the choice to each tool.
type Lint struct {
	Select []string `toml:"select" names:"rule" doc:"The rules that apply, by code, name or the beginning of a code; absent, all"`
	Ignore []string `toml:"ignore" names:"rule" doc:"The rules that do not apply, by code, name or the beginning of a code; it wins over select"`
	Hints  *bool    `toml:"hints" doc:"Whether hints are shown, findings that the compiler removes by itself; absent, in editors and not by dmir lint"`
}

// Machine is the machine called name, one of the user's or a built-in one; the
// configured target where name is "".
func (c *Config) Machine(name string) (*machine.Machine, bool) {
	if c != nil && name == "" {
		name = c.Target
	}
	if name == "" {
		name = machine.Default
	}
	if c != nil {
		if m, ok := c.Machines[strings.ToLower(name)]; ok {
			return m, true
		}
	}
	return machine.Lookup(name)
}

// MachineNames are the names that Machine accepts, sorted.
func (c *Config) MachineNames() []string {
	if c == nil {
		return machine.Names()
	}
	return machine.Names(slices.Collect(maps.Values(c.Machines))...)
}

// text is dmir.toml as it is decoded.
type text struct {
	Target   string                  `toml:"target" names:"machine" doc:"The machine that times are predicted for; absent, h200"`
	Bind     map[string]int64        `toml:"bind" doc:"Sizes of dimension symbols, by name"`
	Products string                  `toml:"f32_products" doc:"How products of f32 that state no precision are computed: f32, or tf32, which rounds their operands for the tensor cores; absent, f32"`
	Lint     Lint                    `toml:"lint" doc:"Which lint rules apply"`
	Traces   []string                `toml:"traces" doc:"Traces of Python programs, or folders of them, beside those in .dmir/traces; paths below the folder of this file"`
	Plan     Plan                    `toml:"plan" doc:"What a training step is planned for"`
	Machines map[string]machine.Spec `toml:"machines" doc:"Machines of your own, by name"`
}

// noMachine is the diagnostic of a machine that there is not.
func (c *Config) noMachine(name string, at source.Span) diag.Diagnostic {
	d := problem("DM904", at, fmt.Sprintf("there is no machine %q", name))
	if err := machine.NoLocal(name); err != nil {
		d.Message += ": " + err.Error()
	}
	d.Help = c.Meant(name)
	return d
}

// Meant is the advice where there is no machine called name.
func (c *Config) Meant(name string) string {
	meant := machine.Meant(name, c.MachineNames())
	if !strings.HasSuffix(meant, "?") {
		meant += ";"
	}
	return meant + " describe others in dmir.toml, under [machines.NAME]"
}

// maxSize bounds the files that are read. Machines and sizes take a few lines
// each, and reading TOML costs the square of the keys of a table.
const maxSize = 64 << 10

// ForFile is the configuration that holds for the program at path, the file it
// was read from (nil where there is none) and its problems. It never
// returns a nil Config.
func ForFile(path string) (*Config, *source.File, []diag.Diagnostic) { return ForFileWith(path, nil) }

// ForFileWith is ForFile where some files are open in an editor: open gives the
// text of those, which counts in place of what is on disk. It may be nil.
func ForFileWith(path string, open func(name string) (text string, ok bool)) (*Config, *source.File, []diag.Diagnostic) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return &Config{}, nil, nil
	}
	for {
		name := filepath.Join(dir, FileName)
		if open != nil {
			if text, ok := open(name); ok {
				return parseAs(name, text)
			}
		}
		text, err := read(dir)
		var other *regular.Error
		switch {
		case err == nil:
			return parseAs(name, string(text))
		case !errors.As(err, &other) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
			return unreadable(name, err)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return &Config{}, nil, nil
		}
		dir = up
	}
}

// read is the text of the configuration in dir. A link may not lead out of dir: messages
// show lines of the file that it names.
func read(dir string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := regular.OpenIn(root, FileName)
	if err != nil {
		if at, linked := root.Readlink(FileName); linked == nil && !filepath.IsLocal(at) {
			return nil, errors.New("it is a link that leads out of its folder; copy the file, or move it to a folder above the programs")
		}
		return nil, err
	}
	defer f.Close()
	return regular.ReadAll(f, maxSize)
}

func parseAs(name, text string) (*Config, *source.File, []diag.Diagnostic) {
	if len(text) > maxSize {
		return unreadable(name, fmt.Errorf("it is larger than %d bytes", maxSize))
	}
	src := source.New(relative(name), text)
	c, diags := Parse(src)
	c.Path = name
	return c, src, diags
}

func unreadable(name string, err error) (*Config, *source.File, []diag.Diagnostic) {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return &Config{Path: name}, source.New(relative(name), ""), []diag.Diagnostic{problem("DM901", source.Span{}, "the configuration cannot be read: "+err.Error())}
}

// relative is name as people in the working directory write it.
func relative(name string) string {
	wd, err := os.Getwd()
	if err != nil {
		return name
	}
	if rel, err := filepath.Rel(wd, name); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return name
}

// Parse reads the text of a dmir.toml. What is wrong is left out of the
// configuration and reported in the diagnostics.
func Parse(src *source.File) (*Config, []diag.Diagnostic) {
	c := &Config{}
	var t text
	dec := toml.NewDecoder(bytes.NewReader([]byte(src.Text()))).DisallowUnknownFields()
	diags := forms(src)
	unused := len(diags) > 0
	for _, d := range decodeProblems(src, dec.Decode(&t)) {
		if d.Code == unknownKey || !unused { // else it is one of those that forms has found
			diags = append(diags, d)
		}
		unused = unused || d.Code != unknownKey
	}
	if unused {
		slices.SortStableFunc(diags, func(a, b diag.Diagnostic) int { return a.Span.Start - b.Span.Start })
		return c, few(diags)
	}
	find := placesOf(src).locate
	c.Lint = t.Lint
	c.Bind = map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(t.Bind)) {
		if t.Bind[name] < 0 {
			diags = append(diags, problem("DM904", find("bind", name), fmt.Sprintf("%s is %d; a size is 0 or more", name, t.Bind[name])))
			continue
		}
		c.Bind[name] = t.Bind[name]
	}
	if c.F32Products = t.Products; !slices.Contains(Precisions, t.Products) && t.Products != "" {
		diags = append(diags, problem("DM904", find("f32_products"), fmt.Sprintf("f32_products is %q; it is f32 or tf32", t.Products)))
		c.F32Products = ""
	}
	c.Machines = map[string]*machine.Machine{}
	described := map[string]bool{} // the machines of the file, with errors or without
	for _, name := range slices.Sorted(maps.Keys(t.Machines)) {
		spec := t.Machines[name]
		described[strings.ToLower(name)] = true
		m, err := spec.Build(name)
		if err != nil {
			diags = append(diags, machineProblems(name, err, find)...)
			continue
		}
		c.Machines[m.Name] = m
	}
	known := func(name string, keys ...string) string {
		if _, ok := c.Machine(name); ok {
			return name
		}
		if described[strings.ToLower(name)] {
			return "" // what is wrong with it is reported
		}
		diags = append(diags, c.noMachine(name, find(keys...)))
		return ""
	}
	c.Target = known(t.Target, "target")
	c.Plan = t.Plan
	c.Plan.Target = known(t.Plan.Target, "plan", "target")
	if t.Plan.Devices < 0 {
		diags = append(diags, problem("DM904", find("plan", "devices"), fmt.Sprintf("%d is no number of devices", t.Plan.Devices)))
		c.Plan.Devices = 0
	}
	slices.SortStableFunc(diags, func(a, b diag.Diagnostic) int { return a.Span.Start - b.Span.Start })
	return c, few(diags)
}
