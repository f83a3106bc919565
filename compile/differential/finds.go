package differential

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dmir/testkit/randprog"
)

// Random is the case of a seed: a function; one that the compiler
// differentiates; or the gradient of one as a function of its own, which is
// compared with differences. The code is for one of the architectures; one case
// in eight is unfused, one in three functions has state, one in three checks, and one
// in four loops that carry tuples.
func Random(seed uint64) Case {
	c := Case{Name: fmt.Sprintf("random%d", seed), Seed: 7, Arch: []string{"", "", "sm_80", "sm_90a"}[seed/8%4], Unfused: seed%8 == 5}
	c.Gradient = seed%4 == 3
	c.Text = randprog.Program(seed, randprog.Options{Gradient: c.Gradient, State: seed%3 == 1, Checks: seed%4 == 2 || seed%8 == 3, Tuples: seed%5 == 3 || seed%8 == 2})
	if seed%8 == 7 {
		if text, err := Derive(c.Text); err == nil { // else Check reports the error
			c.Gradient, c.Of, c.Text = false, c.Text, text
		}
	}
	return c
}

// Shrunk is the find reduced to a smaller program that fails in the same way.
func Shrunk(ctx context.Context, f *Find) (*Find, error) {
	var failed error
	best := f
	if f.Kind == Gradient && f.Case.Of != "" {
		return shrunkGradient(ctx, f)
	}
	f.Case.Of = ""
	randprog.Shrink(f.Case.Text, func(candidates []string) int {
		if failed != nil {
			return -1
		}
		var cases []Case
		for _, text := range candidates {
			c := f.Case
			c.Text = text
			cases = append(cases, c)
		}
		finds, err := Check(ctx, cases)
		if err != nil {
			failed = err
			return -1
		}
		for i, g := range finds {
			if g != nil && alike(f, g) {
				best = g
				return i
			}
		}
		return -1
	})
	return best, failed
}

// shrunkGradient reduces the function that is differentiated.
func shrunkGradient(ctx context.Context, f *Find) (*Find, error) {
	best := f
	randprog.Shrink(f.Case.Of, func(candidates []string) int {
		for i, text := range candidates {
			c := f.Case
			derived, err := Derive(text)
			if err != nil {
				continue
			}
			c.Text, c.Of = derived, text
			p := &prepared{c: c}
			if p.reference(ctx) != nil {
				continue
			}
			if g := p.differences(ctx); g != nil {
				best = g
				return i
			}
		}
		return -1
	})
	best.Case.Text = best.Case.Of // differences are of the function
	return best, ctx.Err()
}

// alike reports whether two finds have the same cause, judging by their
// messages.
func alike(a, b *Find) bool {
	if a.Kind != b.Kind {
		return false
	}
	switch a.Kind {
	case Numbers, Gradient:
		return true
	case Refused:
		return a.Msg[:min(len(a.Msg), 5)] == b.Msg[:min(len(b.Msg), 5)]
	}
	return sense(a.Msg) == sense(b.Msg)
}

// sense is the part of a message that is independent of names, lines and
// numbers.
func sense(msg string) string {
	first, _, _ := strings.Cut(msg, "\n")
	if i := strings.Index(first, "error:"); i >= 0 {
		first = first[i:]
	}
	first = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, first)
	return first[:min(20, len(first))]
}

// Write writes the program of a find to a file in the folder, with the failure
// in comments before it, and returns the file's path.
func (f *Find) Write(dir string) (string, error) {
	var b strings.Builder
	arch := f.Case.Arch
	if arch == "" {
		arch = "portable"
	}
	fmt.Fprintf(&b, "// %s, inputs of seed %d, %s code", f.Case.Name, f.Case.Seed, arch)
	if f.Case.Unfused {
		b.WriteString(", not fused")
	}
	if f.Case.Gradient {
		b.WriteString(", differentiated")
	}
	fmt.Fprintf(&b, "\n// %s\n", f.Kind)
	for line := range strings.Lines(f.Msg) {
		fmt.Fprintf(&b, "// %s\n", strings.TrimRight(line, "\n"))
	}
	b.WriteString(f.Case.Text)
	path := filepath.Join(dir, f.Case.Name+".dmir")
	return path, os.WriteFile(path, []byte(b.String()), 0o644)
}
