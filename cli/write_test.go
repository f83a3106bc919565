//go:build unix

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The remedy for a file that cannot be written fits the reason.
func TestCannotWrite(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	program := at("f.dmir")
	if err := os.WriteFile(program, []byte("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"loop": "loop", "lost": at("nowhere/x")} {
		if err := os.Symlink(to, at(from)); err != nil {
			t.Fatal(err)
		}
	}
	report := []string{"report", "--kind", "roofline", program, "-o"}
	cases := []struct {
		name, config string
		args         []string
		want         string
	}{
		{"long", dir, append(report, at(strings.Repeat("a", 300))), "give it a shorter name; nothing was changed"},
		{"no folder", dir, append(report, at("nowhere/x")), "make its folder, or name another one"},
		{"file for folder", dir, append(report, filepath.Join(program, "x")), "a part of the path is no folder: name another one"},
		{"loop", dir, append(report, at("loop")), "remove the link, or name another file"},
		{"in a loop", dir, append(report, at("loop/x")), "remove the link, or name another file"},
		{"lost", dir, append(report, at("lost")), "make that folder, or remove the link"},
		{"folder", dir, []string{"calibrate", "-o", dir}, "name a file in it"},
		{"relative configuration", "relative", []string{"calibrate"}, "name a file with -o, or give XDG_CONFIG_HOME an absolute path"},
		{"no home", "", []string{"calibrate"}, "name a file with -o, or set HOME"},
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		cases = append(cases, cases[0])
		full := &cases[len(cases)-1]
		full.name, full.args, full.want = "full", append(report, "/dev/full"), "free some space there, or name a file elsewhere"
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("HOME", "")
			t.Setenv("XDG_CONFIG_HOME", c.config)
			var out, errs bytes.Buffer
			status := Main(c.args, strings.NewReader(""), &out, &errs)
			if help := "= help: " + c.want; status != exitFailed || strings.Count(errs.String(), "error[DM603]") != 1 || !strings.Contains(errs.String(), help) {
				t.Errorf("exit status %d, want %d and %q\n%s", status, exitFailed, help, errs.String())
			}
		})
	}
}
