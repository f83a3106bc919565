package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wheel writes a Python package with the module dmir that installs the program as
// a script, so that pip and pre-commit need no Go. Source of the format: PEP 427 and
// PEP 491.
func (r *release) wheel(p platform, program file) error {
	version := pep440(r.version)
	info := "dmir-" + version + ".dist-info/"
	program.name = "dmir-" + version + ".data/scripts/" + program.name
	files := append(slices.Clone(r.module), program)
	add := func(name string, text []byte) {
		files = append(files, file{name: info + name, mode: 0o644, data: text})
	}

	var meta strings.Builder
	fmt.Fprintf(&meta, "Metadata-Version: 2.4\nName: %s\nVersion: %s\nSummary: %s\nAuthor-email: %s\nLicense-Expression: %s\n",
		r.Name, version, r.Summary, r.Maintainer, r.License)
	if r.Repository != "" {
		fmt.Fprintf(&meta, "Project-URL: Repository, %s\n", r.Repository)
	}
	var readme []byte
	for _, f := range r.shared {
		switch f.name {
		case "README.md":
			readme = f.data
		case "LICENSE", "THIRD_PARTY_NOTICES.txt":
			add("licenses/"+f.name, f.data)
			fmt.Fprintf(&meta, "License-File: %s\n", f.name)
		}
	}
	for _, e := range r.extras {
		fmt.Fprintf(&meta, "Provides-Extra: %s\n", e.name)
		for _, need := range e.needs {
			fmt.Fprintf(&meta, "Requires-Dist: %s; extra == %q\n", need, e.name)
		}
	}
	fmt.Fprintf(&meta, "Requires-Python: %s\nDescription-Content-Type: text/markdown\n\n%s", r.requiresPython, readme)
	add("METADATA", []byte(meta.String()))
	add("entry_points.txt", r.entryPoints)

	tags := "Wheel-Version: 1.0\nGenerator: dmir\nRoot-Is-Purelib: false\n"
	for tag := range strings.SplitSeq(p.wheel, ".") {
		tags += "Tag: py3-none-" + tag + "\n"
	}
	add("WHEEL", []byte(tags))

	record := ""
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		record += fmt.Sprintf("%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	add("RECORD", []byte(record+info+"RECORD,,\n"))

	var b bytes.Buffer
	if err := packZip(&b, files, r.time); err != nil {
		return err
	}
	return r.write(fmt.Sprintf("dmir-%s-py3-none-%s.whl", version, p.wheel), b.Bytes())
}

// hooks checks that the hooks of pre-commit, which a tag of the repository provides, install
// the wheel of this release. A build without a version of its own has no such tag.
func (r *release) hooks() error {
	text, err := os.ReadFile(filepath.Join(r.root, "pyproject.toml"))
	if err != nil {
		return err
	}
	want := fmt.Sprintf("dependencies = [%q]", "dmir=="+pep440(r.version))
	if r.version != development && !bytes.Contains(text, []byte("\n"+want+"\n")) {
		return fmt.Errorf("pyproject.toml, by which pre-commit installs the hooks, does not have the release's version: write %s, commit and tag again", want)
	}
	return nil
}

// python reads the module that every wheel has, and what its pyproject.toml says of it.
func (r *release) python() error {
	dir := filepath.Join(r.root, "python")
	text, err := os.ReadFile(filepath.Join(dir, "pyproject.toml"))
	if err != nil {
		return err
	}
	found := regexp.MustCompile(`(?m)^requires-python = "(.+)"$`).FindSubmatch(text)
	if found == nil {
		return errors.New("python/pyproject.toml has no requires-python")
	}
	r.requiresPython = string(found[1])
	_, extras, _ := strings.Cut(string(text), "\n[project.optional-dependencies]\n")
	extras, _, _ = strings.Cut(extras, "\n[")
	for _, m := range extraLine.FindAllStringSubmatch(extras, -1) {
		e := extra{name: m[1]}
		for _, need := range quoted.FindAllStringSubmatch(m[2], -1) {
			e.needs = append(e.needs, need[1])
		}
		r.extras = append(r.extras, e)
	}
	if r.entryPoints, err = os.ReadFile(filepath.Join(dir, "entry_points.txt")); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(dir, "dmir")) // sorted
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".py" && ext != ".typed" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "dmir", e.Name()))
		if err != nil {
			return err
		}
		r.module = append(r.module, file{name: "dmir/" + e.Name(), mode: 0o644, data: text})
	}
	return nil
}

// extra is a name under which the module's package has more to install with it.
type extra struct {
	name  string
	needs []string
}

var (
	extraLine = regexp.MustCompile(`(?m)^(\w+) = \[(.*)\]$`)
	quoted    = regexp.MustCompile(`"([^"]+)"`)
)

// pep440 converts a semantic version: 0.2.0-rc.1 is 0.2.0rc1, 0.0.0-dev is 0.0.0.dev0.
func pep440(version string) string {
	release, pre, found := strings.Cut(version, "-")
	if !found {
		return release
	}
	kind, number, found := strings.Cut(pre, ".")
	if !found {
		number = "0"
	}
	if i := slices.Index([]string{"alpha", "beta", "rc"}, kind); i >= 0 {
		return release + []string{"a", "b", "rc"}[i] + number
	}
	return release + ".dev" + number
}
