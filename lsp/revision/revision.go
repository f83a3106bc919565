// Package revision reads files as they were in revisions of a git repository, by
// git itself. Names of revisions and files are data: none of them becomes an option,
// and the name of a revision becomes no path. What git is asked runs no program that
// a repository could name.
package revision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
)

// MaxBytes is the size of the largest file that is read.
const MaxBytes = 256 << 20

// patience is how long git may take.
const patience = 20 * time.Second

// Error is why there is no such version: one sentence.
type Error struct{ Message string }

func (e *Error) Error() string { return e.Message }

func errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Valid reports whether a text may name a revision.
func Valid(rev string) bool {
	return rev != "" && len(rev) <= 1000 && rev[0] != '-' && rev[0] != '^' && !strings.ContainsFunc(rev, func(r rune) bool {
		return r == ':' || unicode.IsControl(r)
	})
}

// Commit returns the hash of the commit that a revision names, in the repository
// that has the file.
func Commit(ctx context.Context, file, rev string) (string, error) {
	if !Valid(rev) {
		return "", errorf("%q does not name a revision", rev)
	}
	dir, _ := split(file)
	out, err := run(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	var exit *exec.ExitError
	switch {
	case err == nil:
		return strings.TrimSpace(out), nil
	case errors.As(err, &exit) && len(exit.Stderr) == 0:
		if _, err := run(ctx, dir, "rev-parse", "--verify", "--quiet", "HEAD"); rev == "HEAD" && err != nil {
			return "", errorf("the repository has no commit yet")
		}
		return "", errorf("there is no revision %q in the repository", rev)
	}
	return "", explained(ctx, file, err)
}

// Text returns the text of a file in a commit, which Commit has named.
func Text(ctx context.Context, file, commit string) (string, error) {
	dir, base := split(file)
	out, err := run(ctx, dir, "cat-file", "blob", commit+":./"+base)
	var exit *exec.ExitError
	if errors.As(err, &exit) && bytes.HasPrefix(exit.Stderr, []byte("fatal: path '")) {
		return "", errorf("%s is not in the revision", base)
	}
	if err != nil {
		return "", explained(ctx, file, err)
	}
	return out, nil
}

// Entry is a commit that changed a file.
type Entry struct {
	Hash    string // short
	Date    string // YYYY-MM-DD
	Subject string
}

// Log returns the last commits that changed a file, the newest first.
func Log(ctx context.Context, file string, most int) ([]Entry, error) {
	dir, base := split(file)
	out, err := run(ctx, dir, "rev-list", fmt.Sprintf("--max-count=%d", most), "--format=%h%x09%cs%x09%s", "HEAD", "--", "./"+base)
	if err != nil {
		return nil, explained(ctx, file, err)
	}
	var list []Entry
	for line := range strings.Lines(out) {
		if part := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3); len(part) == 3 {
			list = append(list, Entry{part[0], part[1], part[2]})
		}
	}
	return list, nil
}

// split returns the folder and the name of a file, of what it links to if it is a link.
func split(file string) (dir, base string) {
	if to, err := filepath.EvalSymlinks(file); err == nil {
		file = to
	}
	return filepath.Dir(file), filepath.Base(file)
}

// run returns what git prints.
func run(ctx context.Context, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	git := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	git.Env = append(environment(), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_LITERAL_PATHSPECS=1",
		"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none") // the latter for a git that does not know the former
	git.WaitDelay = time.Second // a process that git has started may hold the pipes
	var out limited
	var messages bytes.Buffer
	git.Stdout, git.Stderr = &out, &messages
	err := git.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		exit.Stderr = messages.Bytes()
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if out.over {
		return "", errorf("the file is larger than %d bytes in the revision", MaxBytes)
	}
	return out.String(), err
}

// environment is that of this process without what names a repository or changes
// what git prints: git sets such variables for the editors and hooks that it starts.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case !strings.HasPrefix(name, "GIT_"), strings.HasPrefix(name, "GIT_CONFIG"):
			return false
		case name == "GIT_CEILING_DIRECTORIES", name == "GIT_DISCOVERY_ACROSS_FILESYSTEM", name == "GIT_EXEC_PATH":
			return false
		}
		return true
	})
}

// limited is a buffer that takes no more than MaxBytes.
type limited struct {
	bytes.Buffer
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > MaxBytes {
		l.over = true
		return 0, errors.New("too large")
	}
	return l.Buffer.Write(p)
}

// explained returns an error of run as a sentence.
func explained(ctx context.Context, file string, err error) error {
	var exit *exec.ExitError
	base := filepath.Base(file)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return errorf("git has not answered for %s", patience)
	case errors.Is(err, exec.ErrNotFound):
		return errorf("git is not installed, so %s has no older revision", base)
	case !errors.As(err, &exit):
		return err
	}
	text, _, _ := strings.Cut(string(exit.Stderr), "\n")
	text = strings.TrimPrefix(text, "fatal: ")
	switch {
	case strings.Contains(text, "not a git repository"):
		return errorf("%s is in no git repository", base)
	case strings.Contains(text, "dubious ownership"):
		return errorf("git does not read the repository of %s, because another user owns it", base)
	case strings.Contains(text, "bad revision 'HEAD'"):
		return errorf("the repository has no commit yet")
	case strings.Contains(text, "cannot change to"):
		return errorf("the folder of %s is not on disk", base)
	case text == "":
		return errorf("git failed: %v", err)
	}
	return errorf("git failed: %s", text)
}
