package revision

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes a repository with two commits of sub/f.dmir, and files that no
// commit has; in its configuration and its names are programs that must not run.
func repository(t *testing.T) (dir string, git func(args ...string)) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir = t.TempDir()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	git = func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "core.fsmonitor=false"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	write(t, dir, "sub/f.dmir", "one\n")
	git("add", "sub/f.dmir")
	git("commit", "-q", "-m", "first\ttab")
	write(t, dir, "sub/f.dmir", "two\n")
	git("commit", "-q", "-a", "-m", "second")
	git("tag", "v1", "HEAD~1")
	write(t, dir, "sub/f.dmir", "three\n")
	write(t, dir, "sub/other.dmir", "other\n")
	write(t, dir, "sub/*.dmir", "star\n")
	trap := filepath.Join(dir, "trap")
	write(t, dir, "trap.sh", "#!/bin/sh\ntouch "+trap+"\n")
	if err := os.Chmod(filepath.Join(dir, "trap.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"core.fsmonitor", "core.pager", "gpg.program", "core.sshCommand", "diff.external", "core.editor"} {
		git("config", key, filepath.Join(dir, "trap.sh"))
	}
	git("config", "log.showSignature", "true")
	_ = os.Remove(trap)
	t.Cleanup(func() {
		if _, err := os.Stat(trap); err == nil {
			t.Error("a program that the repository names has run")
		}
	})
	return dir, git
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func textAt(file, rev string) (string, error) {
	commit, err := Commit(context.Background(), file, rev)
	if err != nil {
		return "", err
	}
	return Text(context.Background(), file, commit)
}

func TestText(t *testing.T) {
	dir, git := repository(t)
	f := filepath.Join(dir, "sub", "f.dmir")
	git("tag", "--", "f.dmir")
	for _, c := range []struct{ rev, want string }{
		{"HEAD", "two\n"},
		{"HEAD~1", "one\n"},
		{"main", "two\n"},
		{"v1", "one\n"},
		{"main@{0}", "two\n"},
		{"HEAD^{/first}", "one\n"},
		{"f.dmir", "two\n"},
	} {
		if got, err := textAt(f, c.rev); got != c.want || err != nil {
			t.Errorf("%s: %q, %v", c.rev, got, err)
		}
	}
	if got, err := textAt(filepath.Join(dir, "sub", "*.dmir"), "HEAD"); err == nil {
		t.Errorf("a pattern for a name: %q", got)
	}
	link := filepath.Join(dir, "link.dmir")
	if err := os.Symlink(f, link); err == nil {
		if got, err := textAt(link, "HEAD"); got != "two\n" || err != nil {
			t.Errorf("a link: %q, %v", got, err)
		}
	}
}

// What cannot be read is one sentence, and no name is an option or a path.
func TestNoText(t *testing.T) {
	dir, _ := repository(t)
	f := filepath.Join(dir, "sub", "f.dmir")
	out := filepath.Join(dir, "written")
	for _, c := range []struct{ file, rev, want string }{
		{f, "nowhere", `there is no revision "nowhere" in the repository`},
		{f, "HEAD~9", `there is no revision "HEAD~9" in the repository`},
		{f, "HEAD:sub/f.dmir", "does not name a revision"},
		{f, ":0", "does not name a revision"},
		{f, "", "does not name a revision"},
		{f, "--help", "does not name a revision"},
		{f, "^main", "does not name a revision"},
		{f, "HEAD..main", "there is no revision"},
		{f, "-C/", "does not name a revision"},
		{f, "--output=" + out, "does not name a revision"},
		{f, "main --output=" + out, "there is no revision"},
		{f, "../../f.dmir", "there is no revision"},
		{f, "HEAD\nHEAD", "does not name a revision"},
		{f, "HEAD\x00", "does not name a revision"},
		{f, strings.Repeat("a", 2000), "does not name a revision"},
		{f, "$(touch " + out + ")", "there is no revision"},
		{filepath.Join(dir, "sub", "other.dmir"), "HEAD", "other.dmir is not in the revision"},
		{filepath.Join(dir, "sub", "repository.dmir"), "HEAD", "repository.dmir is not in the revision"},
		{filepath.Join(dir, "gone", "f.dmir"), "HEAD", "the folder of f.dmir is not on disk"},
		{filepath.Join(t.TempDir(), "f.dmir"), "HEAD", "f.dmir is in no git repository"},
	} {
		got, err := textAt(c.file, c.rev)
		var e *Error
		if !errors.As(err, &e) || got != "" || !strings.Contains(e.Message, c.want) || strings.Contains(e.Message, "\n") {
			t.Errorf("%.40q of %s: %q, %v", c.rev, c.file, got, err)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the name of a revision has written a file")
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := textAt(f, "HEAD"); err == nil || err.Error() != "git is not installed, so f.dmir has no older revision" {
		t.Errorf("without git: %v", err)
	}
}

func TestLog(t *testing.T) {
	dir, _ := repository(t)
	f := filepath.Join(dir, "sub", "f.dmir")
	got, err := Log(t.Context(), f, 9)
	if err != nil || len(got) != 2 || got[0].Subject != "second" || got[1].Subject != "first\ttab" || len(got[0].Date) != len("2026-01-02") {
		t.Fatalf("%+v, %v", got, err)
	}
	if text, err := textAt(f, got[1].Hash); text != "one\n" || err != nil {
		t.Errorf("the commit of the log: %q, %v", text, err)
	}
	if got, err := Log(t.Context(), f, 1); err != nil || len(got) != 1 {
		t.Errorf("at most one: %v, %v", got, err)
	}
	if got, err := Log(t.Context(), filepath.Join(dir, "sub", "other.dmir"), 9); err != nil || len(got) != 0 {
		t.Errorf("of a file that was never committed: %v, %v", got, err)
	}
	empty := t.TempDir()
	if out, err := exec.Command("git", "-C", empty, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	write(t, empty, "f.dmir", "x")
	for _, do := range []func() error{
		func() error { _, err := Log(t.Context(), filepath.Join(empty, "f.dmir"), 9); return err },
		func() error { _, err := textAt(filepath.Join(empty, "f.dmir"), "HEAD"); return err },
	} {
		if err := do(); err == nil || err.Error() != "the repository has no commit yet" {
			t.Errorf("no commit: %v", err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Log(ended, f, 9); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A repository may lack objects and name the program that brings them: it is not run.
func TestMissingObjects(t *testing.T) {
	dir, git := repository(t)
	f := filepath.Join(dir, "sub", "f.dmir")
	for _, kv := range [][2]string{
		{"core.repositoryFormatVersion", "1"},
		{"extensions.partialClone", "origin"},
		{"remote.origin.promisor", "true"},
		{"remote.origin.url", t.TempDir()},
		{"remote.origin.uploadpack", filepath.Join(dir, "trap.sh")},
		{"protocol.allow", "always"},
	} {
		git("config", kv[0], kv[1])
	}
	blob, err := exec.Command("git", "-C", dir, "rev-parse", "HEAD:sub/f.dmir").Output()
	if err != nil {
		t.Fatal(err)
	}
	hash := strings.TrimSpace(string(blob))
	if err := os.Remove(filepath.Join(dir, ".git", "objects", hash[:2], hash[2:])); err != nil {
		t.Fatal(err)
	}
	if got, err := textAt(f, "HEAD"); err == nil || strings.Contains(err.Error(), "not in the revision") {
		t.Errorf("%q, %v", got, err)
	}
}

// An editor that git has started has variables that name a repository.
func TestEnvironment(t *testing.T) {
	dir, _ := repository(t)
	f := filepath.Join(dir, "sub", "f.dmir")
	for name, value := range map[string]string{
		"GIT_DIR": filepath.Join(t.TempDir(), ".git"), "GIT_WORK_TREE": t.TempDir(), "GIT_INDEX_FILE": f, "GIT_OBJECT_DIRECTORY": t.TempDir(),
		"GIT_GLOB_PATHSPECS": "1", "GIT_TRACE": "1", "GIT_NAMESPACE": "n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if got, err := textAt(f, "HEAD~1"); got != "one\n" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
			if got, err := Log(t.Context(), f, 9); len(got) != 2 || err != nil {
				t.Errorf("%v, %v", got, err)
			}
			if _, err := textAt(f, "nowhere"); err == nil || !strings.Contains(err.Error(), "there is no revision") {
				t.Errorf("%v", err)
			}
		})
	}
}
