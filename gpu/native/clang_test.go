//go:build unix

package native

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/device"
)

// fake puts a script called name into a folder that is all of PATH.
func fake(t *testing.T, dir, name, script string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nPATH=/usr/bin:/bin\n"+script+"\n"), 0o755))
}

// nothingLeft verifies that there are no files in the temporary folder and the cache.
func nothingLeft(t *testing.T) {
	t.Helper()
	for _, dir := range []string{os.TempDir(), filepath.Join(os.Getenv("DMIR_CACHE"), "native")} {
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// version is a script that prints a version, and does the rest otherwise.
func version(v, rest string) string {
	return "if [ \"$1\" = --version ]; then echo 'Debian clang version " + v + "'; exit; fi\n" + rest
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name    string
		clangs  map[string]string
		env     string // $DMIR_CLANG, in the folder
		want    string // the version, or part of the error
		missing bool
	}{
		{"none", nil, "", "clang is not installed; clang 14 or newer compiles programs to fast code", true},
		{"clang", map[string]string{"clang": version("19.1.7", "")}, "", "clang 19.1.7", false},
		{"old", map[string]string{"clang": version("13.0.1", "")}, "", "clang 13.0.1, which is too old", true},
		{"old and new", map[string]string{"clang": version("13.0.1", ""), "clang-15": version("15.0.6", ""), "clang-17": version("17.0.1", "")}, "", "clang 17.0.1", false},
		{"Apple's", map[string]string{"clang": "echo 'Apple clang version 15.0.0 (clang-1500.3.9.4)'"}, "", "clang 15.0.0", false},
		{"another compiler", map[string]string{"clang": "echo 'gcc 12'"}, "", `it prints "gcc 12" as its version`, true},
		{"broken", map[string]string{"clang": "echo 'error while loading shared libraries' >&2; exit 127"}, "", "failed (exit status 127): error while loading shared libraries", true},
		{"named", map[string]string{"clang": version("14.0.0", ""), "mine": version("20.1.0", "")}, "mine", "clang 20.1.0", false},
		{"named and missing", map[string]string{"clang": version("14.0.0", "")}, "mine", "which is not a program", true},
		{"named and old", map[string]string{"mine": version("9.0.0", "")}, "mine", "too old", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := toolless(t)
			for name, script := range c.clangs {
				fake(t, dir, name, script)
			}
			if c.env != "" {
				t.Setenv("DMIR_CLANG", filepath.Join(dir, c.env))
			}
			got, err := Find(t.Context())
			if !c.missing {
				if err != nil || got.Version != c.want {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			f, _ := artifact.FailureOf(err)
			if err == nil || !strings.Contains(err.Error(), c.want) || f.Reason != artifact.MissingTool || f.Help == "" {
				t.Errorf("%v, %+v", err, f)
			}
			if _, err := Compile(t.Context(), doubled(3), "x86-64-v3"); err == nil {
				t.Error("compiled without a compiler")
			}
			nothingLeft(t)
		})
	}
}

// What goes wrong when clang runs.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name, script string
		reason       artifact.Reason
		line         int
		want         string
	}{
		{"rejected", `echo "kernels.ll:7:12: error: use of undefined value '@dmir.kernel.twice'" >&2; exit 1`, artifact.Rejected, 7, "clang 14.0.6 does not compile the program: kernels.ll:7:12: error: use of undefined value '@twice'"},
		{"fails", `echo "warning: x"; echo "clang: error: unable to make temporary file: No space left on device"; exit 1`, artifact.MissingTool, 0, "clang: error: unable to make temporary file: No space left on device"},
		{"silent", "exit 3", artifact.MissingTool, 0, "failed (exit status 3)"},
		{"killed", "kill -9 $$", artifact.MissingTool, 0, "failed (signal: killed)"},
		{"makes nothing", "exit 0", artifact.MissingTool, 0, "ended without an error and without output"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake(t, toolless(t), "clang", version("14.0.6", c.script))
			for name, f := range map[string]func() error{
				"compile": func() error { _, err := Compile(t.Context(), doubled(3), "x86-64-v3"); return err },
				"object":  func() error { _, err := Object(t.Context(), doubled(3), "x86-64-v3"); return err },
				"run": func() error {
					_, err := processor{}.Run(t.Context(), doubled(3), [][]byte{make([]byte, 12)}, device.Options{})
					return err
				},
			} {
				err := f()
				got, _ := artifact.FailureOf(err)
				if err == nil || got.Reason != c.reason || got.Line != c.line || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v, %+v", name, err, got)
				}
			}
			nothingLeft(t)
		})
	}
}

// A cancelled compilation ends at once, with all processes, and leaves nothing.
func TestCancelledCompiler(t *testing.T) {
	dir := toolless(t)
	started, never := filepath.Join(dir, "started"), filepath.Join(dir, "never")
	for _, path := range []string{started, never} {
		must(t, syscall.Mkfifo(path, 0o600))
	}
	// The compiler and its child wait for something that does not come; the child holds
	// the output.
	fake(t, dir, "clang", version("14.0.6", "echo x > part.o\n(echo $$ > "+started+"; cat "+never+") &\ncat "+never))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		os.ReadFile(started)
		cancel()
	}()
	if _, err := Compile(ctx, doubled(3), "x86-64-v3"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled compilation: %v", err)
	}
	nothingLeft(t)
	if _, err := Compile(ctx, doubled(3), "x86-64-v3"); !errors.Is(err, context.Canceled) {
		t.Errorf("a compilation that begins cancelled: %v", err)
	}
	nothingLeft(t)
}
