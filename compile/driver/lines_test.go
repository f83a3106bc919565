package driver

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dmir/testkit/need"
)

var lineDirective = regexp.MustCompile(`^#line (\d+) "(.*)"$`)

// What a kernel's text stands for are lines of ops that it came from, beginning
// with its first, so that editors lead from the one to the other and back: of each program as it is
// generated for Hopper or, in turn, for any device.
func TestLinesOfKernels(t *testing.T) {
	t.Parallel()
	for i, path := range files(t, filepath.Join(programs, "*.dmir")) {
		for j, arch := range []string{"", "sm_90a"} {
			if !need.Turn(t, i+j, 2) {
				continue
			}
			p := read(t, path)
			m, fn, err := Pick(p, "")
			if err != nil {
				t.Fatal(err)
			}
			built, err := Build(t.Context(), m, fn, BuildOptions{Machine: machineFor("sm_90a"), Arch: arch, Bind: p.Bind})
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Split(built.Source, "\n")
			for _, k := range built.Kernels {
				last := ""
				for n, line := range text[k.First-1 : k.Last] {
					d := lineDirective.FindStringSubmatch(line)
					switch {
					case d == nil && strings.HasPrefix(line, "#"):
						t.Errorf("%s, %s: %q", path, k.Name, line)
					case d == nil && n == 1:
						t.Errorf("%s, %s: it begins without a line", path, k.Name)
					case d == nil:
						continue
					case line == last:
						t.Errorf("%s, %s: line %s stands twice", path, k.Name, d[1])
					}
					last = line
					if at, _ := strconv.Atoi(d[1]); !slices.Contains(k.Lines, at) || d[2] != path {
						t.Errorf("%s, %s: stands for %s:%d; it came from %v", path, k.Name, d[2], at, k.Lines)
					}
				}
			}
		}
	}
}
