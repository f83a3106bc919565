package device

import (
	"context"
	"os/exec"
	"strings"
)

// Tool is an optional program or library.
type Tool struct {
	Name string
	Adds string // what it is for
	Get  string // how to install it
	// Probe returns what is installed, "" for nothing; an error is about something
	// that is installed and cannot be used.
	Probe func(context.Context) (found string, err error)
}

// Installed is a tool that was fetched.
type Installed struct {
	Version string // empty for what comes with the tool before it
	Path    string
}

// OnPath probes for the first of names on PATH and returns the version that it
// prints.
func OnPath(flag string, names ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		for _, n := range names {
			path, err := exec.LookPath(n)
			if err != nil {
				continue
			}
			out, _ := exec.CommandContext(ctx, path, flag).Output()
			first := ""
			for line := range strings.Lines(string(out)) {
				if line = strings.TrimSpace(line); strings.Contains(strings.ToLower(line), "version") || strings.Contains(line, ", release ") {
					return path + " (" + line + ")", nil
				}
				if first == "" {
					first = line
				}
			}
			if first != "" {
				return path + " (" + first + ")", nil
			}
			return path, nil
		}
		return "", nil
	}
}
