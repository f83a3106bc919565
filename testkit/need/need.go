// Package need is for tests that need a tool or an input from outside the
// repository. If that is missing the test is skipped with the reason; if the
// variable CI is set it fails, since no test may be skipped there.
package need

import (
	"fmt"
	"os"
	"os/exec"
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
