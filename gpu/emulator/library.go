package emulator

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strconv"
	"strings"

	"dmir/gpu/artifact"
)

//go:embed library.cuh
var libraryText string

// librarySource is a program's half of a shared library.
const librarySource = `#include "main.cc"
extern const dm::emu::Kernel* const dm_kernels = kernels;
extern const char dm_plan[] =
#include "plan.inc"
    ;
extern const size_t dm_plan_bytes = sizeof dm_plan - 1;
`

// Library returns the program's kernels as a shared library with one
// function that launches one of them, dm_launch of library.cuh: machine code for
// the fake driver in tests.
func Library(ctx context.Context, p *artifact.Program, opt Options) ([]byte, error) {
	if p.Foreign {
		return nil, ErrForeign
	}
	tools, err := newToolchain(ctx, opt, false)
	if err != nil {
		return nil, err
	}
	files, err := headers(p)
	if err != nil {
		return nil, err
	}
	plan, err := planText(p)
	if err != nil {
		return nil, err
	}
	var quoted strings.Builder // compilers limit the length of a literal, not of several
	for line := range strings.Lines(string(plan)) {
		fmt.Fprintf(&quoted, "%s\n", strconv.Quote(line))
	}
	files[programName], files["main.cc"], files["plan.inc"] = withoutLines(p.Source), mainText(p), quoted.String()
	files["program.cc"] = librarySource
	common, _, err := tools.kept(ctx, ".lib.o", map[string]string{"library.cc": libraryText}, "-fPIC", "-fvisibility=hidden", "-O1", "-c", "library.cc")
	if err != nil {
		return nil, err
	}
	args := append(fastLinker(), "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-Bsymbolic", level(p), "program.cc", common)
	path, _, err := tools.kept(ctx, ".so", files, args...)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
