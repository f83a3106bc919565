package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"dmir/base/escape"
)

// hooksFile is where pre-commit reads its hooks.
const hooksFile = ".pre-commit-config.yaml"

// hooks writes the hooks of pre-commit, or adds them to those that there are.
func (s *setup) hooks() error {
	path := filepath.Join(s.folder, hooksFile)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.file(hooksFile, "repos:\n"+indented(hookEntry(), 2), "hooks of dmir; pre-commit install")
	case err != nil:
		return cannotRead(path, err)
	case hasHooks(text):
		s.same = append(s.same, path)
		return nil
	}
	added, ok := withEntry(string(text))
	if !ok {
		escape.Fprintf(s.stdout, "%s: not changed, as its list of repos is not plain YAML; add to it:\n", path)
		_, err := io.WriteString(s.stdout, indented(hookEntry(), 2))
		return err
	}
	if err := write(path, added); err != nil {
		return err
	}
	s.wrote(path, "hooks of dmir added")
	return nil
}

// hookEntry is the entry of the list of repos. A release's hooks install its wheel,
// those of a build without a version use the program on PATH.
func hookEntry() string {
	language := "language: system"
	if released() {
		language = "language: python, additional_dependencies: [dmir==" + version + "]"
	}
	entry := "- repo: local\n  hooks:\n"
	for _, command := range []string{"fmt", "lint"} {
		entry += fmt.Sprintf("    - {id: dmir-%[1]s, name: dmir %[1]s, %[2]s, entry: dmir %[1]s, files: '\\.dmir$'}\n", command, language)
	}
	return entry
}

func indented(text string, by int) string {
	blanks := strings.Repeat(" ", by)
	return blanks + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+blanks) + "\n"
}

// hookConfig is what init reads of a configuration of pre-commit.
type hookConfig struct {
	Repos []struct {
		Hooks []struct{ ID string }
	}
}

// hasHooks reports whether a configuration has a hook of dmir.
func hasHooks(text []byte) bool {
	var c hookConfig
	if yaml.Unmarshal(text, &c) != nil {
		return false
	}
	for _, r := range c.Repos {
		for _, h := range r.Hooks {
			if strings.HasPrefix(h.ID, "dmir-") {
				return true
			}
		}
	}
	return false
}

// withEntry adds the entry behind the last of the list of repos, and changes no other
// line: ok is false of a text that has no such list in lines of its own.
func withEntry(text string) (added string, ok bool) {
	var document yaml.Node
	if yaml.Unmarshal([]byte(text), &document) != nil || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return "", false
	}
	pairs := document.Content[0].Content // keys and values in turn
	i := slices.IndexFunc(pairs, func(n *yaml.Node) bool { return n.Value == "repos" })
	if i < 0 || i%2 == 1 || pairs[i+1].Kind != yaml.SequenceNode || pairs[i+1].Style&yaml.FlowStyle != 0 || len(pairs[i+1].Content) == 0 {
		return "", false
	}
	repos := pairs[i+1]
	lines := strings.SplitAfter(text, "\n")
	end := len(lines)
	if i+2 < len(pairs) {
		end = pairs[i+2].Line - 1
	}
	for end > repos.Line && (strings.TrimSpace(lines[end-1]) == "" || strings.HasPrefix(lines[end-1], "#")) {
		end-- // what stands before the next key belongs to it
	}
	before := strings.Join(lines[:end], "")
	if !strings.HasSuffix(before, "\n") {
		before += "\n"
	}
	added = before + indented(hookEntry(), repos.Column-1) + strings.Join(lines[end:], "")
	var was, is hookConfig
	if yaml.Unmarshal([]byte(text), &was) != nil || yaml.Unmarshal([]byte(added), &is) != nil || len(is.Repos) != len(was.Repos)+1 {
		return "", false
	}
	return added, true
}
