package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dmir/cli"
)

// TestTutorial does what docs/TUTORIAL.md tells, in its order, in an empty folder:
// a block with a title is a file to save, a block of commands shows their output,
// and a block of sh the commands whose output depends on the machine.
func TestTutorial(t *testing.T) {
	text, err := os.ReadFile("../docs/TUTORIAL.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("COLUMNS", "")
	files, commands := 0, 0
	for _, block := range regexp.MustCompile("(?ms)^```(\\w*)(?: title=\"(.*?)\")?\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		language, title, body := block[1], block[2], block[3]
		switch {
		case title != "":
			files++
			if err := os.WriteFile(title, []byte(body), 0o644); err != nil {
				t.Fatal(err)
			}
			if filepath.Ext(title) != ".dmir" {
				continue
			}
			var out, errs bytes.Buffer
			if cli.Main([]string{"fmt", "--check", title}, strings.NewReader(""), &out, &errs) != 0 {
				t.Errorf("%s is not formatted: %s%s", title, &out, &errs)
			}
		case language == "":
			for _, part := range strings.Split("\n"+body, "\n$ dmir ")[1:] {
				command, want, _ := strings.Cut(part, "\n")
				commands++
				var out, errs bytes.Buffer
				command, file, redirected := strings.Cut(command, " > ")
				cli.Main(strings.Fields(command), strings.NewReader(""), &out, &errs)
				if redirected {
					must(t, os.WriteFile(file, out.Bytes(), 0o644))
					out.Reset()
				}
				if missing := leftOut("\n"+strings.TrimRight(want, "\n"), out.String()); missing != "" || strings.Contains(errs.String(), "error") {
					t.Errorf("dmir %s: the page shows\n%s\nwhich is not in\n%s%s", command, missing, &out, &errs)
				}
			}
		case language == "sh":
			for line := range strings.Lines(body) {
				command, _, _ := strings.Cut(strings.TrimPrefix(line, "dmir "), "#")
				commands++
				var out, errs bytes.Buffer
				if cli.Main(strings.Fields(command), strings.NewReader(""), &out, &errs) != 0 {
					t.Errorf("dmir %s: %s%s", command, &out, &errs)
				}
			}
		}
	}
	if files < 4 || commands < 10 {
		t.Errorf("%d files and %d commands", files, commands)
	}
}
