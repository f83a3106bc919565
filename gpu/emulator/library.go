package emulator

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"dmir/gpu/artifact"
)

//go:embed library.cuh
var libraryText string

// Library writes the program's kernels to path as a shared library with one
// function that launches one of them, dm_launch of library.cuh: machine code for
// the fake driver in tests.
func Library(ctx context.Context, p *artifact.Program, path string, opt Options) error {
	if p.Foreign {
		return ErrForeign
	}
	cxx, err := compiler(opt.Compiler)
	if err != nil {
		return err
	}
	files, err := headers(p)
	if err != nil {
		return err
	}
	plan, err := planText(p)
	if err != nil {
		return err
	}
	var quoted strings.Builder // compilers limit the length of a literal, not of several
	for line := range strings.Lines(string(plan)) {
		fmt.Fprintf(&quoted, "%s\n", strconv.Quote(line))
	}
	files[programName], files["main.cc"], files["plan.inc"] = withoutLines(p.Source), mainText(p), quoted.String()
	files["library.cc"] = libraryText
	return compile(ctx, cxx, files, filepath.Dir(path), path, "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-Bsymbolic", level(p), "library.cc")
}
