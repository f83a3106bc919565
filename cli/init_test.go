package cli

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"dmir/analysis/machine"
)

// The workflow is the one that docs/CI.md shows, and a release pins itself in it and in
// the hooks, which have all that pre-commit asks for.
func TestInitFiles(t *testing.T) {
	if !strings.Contains(ciPage(t), "\n```yaml\n"+workflow()+"```\n") {
		t.Error("docs/CI.md does not show the workflow that dmir init writes")
	}
	defer func(v string) { version = v }(version)
	version = "1.2.3"
	if !strings.Contains(workflow(), "- run: pip install dmir==1.2.3\n") {
		t.Errorf("the workflow pins no release:\n%s", workflow())
	}
	block := strings.ReplaceAll("repos:\n"+indented(hookEntry(), 2), "1.2.3", "DMIR_VERSION")
	if !strings.Contains(ciPage(t), "\n```yaml\n"+block+"```\n") {
		t.Errorf("docs/CI.md does not show the hooks that dmir init writes:\n%s", block)
	}
	var c struct {
		Repos []struct {
			Repo  string
			Hooks []struct {
				ID, Name, Language, Entry, Files string
				Needs                            []string `yaml:"additional_dependencies"`
			}
		}
	}
	if err := yaml.Unmarshal([]byte("repos:\n"+hookEntry()), &c); err != nil {
		t.Fatal(err)
	}
	for _, h := range c.Repos[0].Hooks {
		if h.ID == "" || h.Name == "" || h.Entry == "" || h.Files != `\.dmir$` || h.Language != "python" || len(h.Needs) != 1 {
			t.Errorf("%+v", h)
		}
	}
}

// What init writes has no finding on any machine.
func TestInitPasses(t *testing.T) {
	for _, m := range machine.All() {
		dir := t.TempDir()
		for _, command := range [][]string{{"init", "--target", m.Name, dir}, {"fmt", "--check", dir}, {"lint", "--strict", dir}} {
			var out, errs strings.Builder
			if status := Main(command, strings.NewReader(""), &out, &errs); status != exitOK || errs.Len() > 0 {
				t.Errorf("%s: %s: status %d\n%s%s", m.Name, command[0], status, &out, &errs)
			}
		}
	}
}

// Entries are added behind the last one, and nothing else changes; other texts are left.
func TestWithEntry(t *testing.T) {
	const entry = "- repo: x\n  hooks: [{id: a}]\n"
	for name, c := range map[string]struct{ before, after string }{
		"at the end":           {"repos:\n" + entry, ""},
		"without a line break": {"repos:\n- repo: x\n  hooks: [{id: a}]", "\n"},
		"before another key":   {"repos:\n" + entry, "fail_fast: true\n"},
		"before a comment":     {"repos:\n" + entry, "\n# ci\nci: {}\n"},
		"comment at the end":   {"repos:\n" + entry, "# end\n"},
		"indented":             {"x: 1\nrepos:\n  - repo: x\n    hooks:\n      - id: a # a\n", ""},
		"document":             {"---\nrepos:\n" + entry, ""},
	} {
		text := c.before + strings.TrimPrefix(c.after, "\n")
		if c.after != "\n" {
			text = c.before + c.after
		}
		got, ok := withEntry(text)
		rest, begins := strings.CutPrefix(got, c.before)
		if !ok || !begins || !strings.HasSuffix(got, strings.TrimPrefix(c.after, "\n")) || !strings.Contains(rest, "repo: local") || !hasHooks([]byte(got)) {
			t.Errorf("%s: %v\n%s", name, ok, got)
		}
		if hasHooks([]byte(text)) {
			t.Errorf("%s: has hooks of dmir before", name)
		}
	}
	for _, text := range []string{"", "repos:\n", "repos: []\n", "repos: {}\n", "- repo: x\n", "other: 1\n", "repos: [\n", "\t", "repos: &r\n  - x\nmore: *r\n", "a: repos\n"} {
		if got, ok := withEntry(text); ok && !hasHooks([]byte(got)) {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func ciPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/CI.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
