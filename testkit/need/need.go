// Package need is for tests that need a tool or an input from outside the
// repository. If that is missing the test is skipped with the reason; if the
// variable CI is set it fails, since no test may be skipped there.
package need

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// OK skips or fails the test if err, the reason why something it needs is missing, is
// not nil.
func OK(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
}

// Tool returns the path of a program. install is how to get it.
func Tool(t testing.TB, name, install string) (path string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		err = fmt.Errorf("%s is not installed (%s)", name, install)
	}
	OK(t, err)
	return path
}

// Long skips a test that takes longer than seconds if the flag -short is set.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes longer than seconds")
	}
}

// Command returns the path of dmir's command, built from the sources here: the file that $DMIR_COMMAND names, which
// scripts/test-go.sh builds for all packages, or one of this process.
func Command(t testing.TB) string {
	t.Helper()
	path, err := command()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var command = sync.OnceValues(func() (path string, err error) {
	if path = os.Getenv("DMIR_COMMAND"); path != "" {
		_, err = os.Stat(path) // so that Go's cache of results depends on it
		return path, err
	}
	dir, err := os.MkdirTemp("", "dmir-command-*")
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "dmir")
	if out, err := exec.Command("go", "build", "-o", path, "dmir").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})
