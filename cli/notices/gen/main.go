// Gen writes the third-party notices: of the modules that are linked into the binary,
// and, with -npm, of the packages that are bundled into the extension, which npm
// installs for that. It runs in cli/notices.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	goFile    = "THIRD_PARTY_NOTICES.txt"
	extension = "../../vscode-extension"
)

func main() {
	npm := flag.Bool("npm", false, "the packages of the extension too")
	flag.Parse()
	if err := run(*npm); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run(npm bool) error {
	modules, err := linked()
	if err != nil {
		return err
	}
	text, err := notices("The binary of dmir holds, beside dmir's own code, that of the following modules.", modules)
	if err != nil {
		return err
	}
	if err := os.WriteFile(goFile, []byte(text), 0o644); err != nil || !npm {
		return err
	}
	folder, err := os.MkdirTemp("", "dmir-npm-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(filepath.Join(extension, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
			return err
		}
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund")
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	packages, err := bundled(extension)
	if err != nil {
		return err
	}
	for i := range packages {
		packages[i].dir = filepath.Join(folder, packages[i].dir)
	}
	text, err = notices("The extension holds, beside dmir's own code, that of the following packages.", packages)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(extension, goFile), []byte(text), 0o644)
}

// part is third-party software that is shipped.
type part struct {
	name, version string
	dir           string // that holds its licence
}

func (p part) String() string { return p.name + " " + p.version }

// platforms are the platforms of released binaries (scripts/cross-build.sh).
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// linked are the modules of the packages that the binary holds on any platform,
// and Go itself, whose library is linked too.
func linked() ([]part, error) {
	all := map[part]bool{}
	for _, platform := range platforms {
		system, machine, _ := strings.Cut(platform, "/")
		cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", "dmir")
		cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+machine, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			return nil, failed(err)
		}
		for line := range strings.Lines(string(out)) {
			if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 {
				all[part{f[0], f[1], f[2]}] = true
			}
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, failed(err)
	}
	// Without its version: any Go from that of go.mod on builds the binary.
	parts := []part{{"The Go standard library", "", strings.TrimSpace(string(root))}}
	for p := range all {
		parts = append(parts, p)
	}
	slices.SortFunc(parts[1:], func(a, b part) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.version, b.version)) })
	return parts, nil
}

func failed(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return err
}

// bundled are the packages that the extension runs with, by the lock file.
func bundled(extension string) ([]part, error) {
	b, err := os.ReadFile(filepath.Join(extension, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version string
			Dev     bool
		}
	}
	if err := json.Unmarshal(b, &lock); err != nil {
		return nil, err
	}
	var parts []part
	for dir, p := range lock.Packages {
		if dir != "" && !p.Dev {
			parts = append(parts, part{dir[strings.LastIndex(dir, "node_modules/")+len("node_modules/"):], p.Version, dir})
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.dir, b.dir)) })
	return parts, nil
}

var licence = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice|patents|third_party_licen[cs]es)([._-].*)?$`)

// notices is a list of the parts, and each licence text with its parts.
func notices(head string, parts []part) (string, error) {
	type text struct {
		body string
		of   []string
	}
	var texts []*text
	for _, p := range parts {
		bodies, err := licences(p.dir)
		if err != nil {
			return "", err
		}
		if len(bodies) == 0 {
			return "", fmt.Errorf("%s has no licence in %s", p, p.dir)
		}
		for _, body := range bodies {
			i := slices.IndexFunc(texts, func(t *text) bool { return t.body == body })
			if i < 0 {
				i, texts = len(texts), append(texts, &text{body: body})
			}
			texts[i].of = append(texts[i].of, strings.TrimSpace(p.String()))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", head)
	for _, p := range parts {
		fmt.Fprintf(&b, "  %s\n", strings.TrimSpace(p.String()))
	}
	for _, t := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(t.of, "\n"), strings.Repeat("-", 80), t.body)
	}
	return b.String(), nil
}

// licences are the licence texts in a folder.
func licences(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if !licence.MatchString(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			inner, err := os.ReadDir(path)
			if err != nil {
				return nil, err
			}
			for _, f := range inner {
				if f.Type().IsRegular() {
					b, err := os.ReadFile(filepath.Join(path, f.Name()))
					if err != nil {
						return nil, err
					}
					out = append(out, plain(b))
				}
			}
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		out = append(out, plain(b))
	}
	return out, nil
}

// plain is a text with the line ends of this system's and no blanks around it.
func plain(b []byte) string {
	return string(bytes.TrimSpace(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))))
}
