package native

import (
	"embed"
	"io/fs"
	"regexp"
	"strings"

	"dmir/gpu/artifact"
)

//go:embed runtime
var runtimeFiles embed.FS

// The files of a program that clang compiles.
const (
	kernelsFile = "kernels.ll"
	tableFile   = "program.c"
	runtimeFile = "runtime.c" // the same for all programs
)

// Sources are the files that clang compiles a program from, by name: "kernels.ll",
// "program.c", "runtime.c" and what they include.
func Sources(p *artifact.Program) (map[string][]byte, error) { return sources(p, true) }

// sources are Sources of an object that has the constants inside, or is given them.
func sources(p *artifact.Program, inside bool) (map[string][]byte, error) {
	if p.Foreign {
		return nil, ErrForeign
	}
	if err := check(p); err != nil {
		return nil, err
	}
	files := map[string][]byte{
		kernelsFile: []byte(renamed(p)),
		tableFile:   []byte(table(p, inside)),
	}
	if inside {
		files[constantsFile] = constants(p)
	}
	list, err := fs.ReadDir(runtimeFiles, "runtime")
	if err != nil {
		return nil, err
	}
	for _, f := range list {
		if files[f.Name()], err = runtimeFiles.ReadFile("runtime/" + f.Name()); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// tokens are the parts of IR that a name of a function may be in, or must not be
// looked for: strings, comments, global names.
var tokens = regexp.MustCompile(`"[^"]*"|;[^\n]*|@[-a-zA-Z$._0-9]+`)

// renamed is the IR of a program with its kernels' names as their symbols. A kernel
// called like a function of the C library would be called in place of that.
func renamed(p *artifact.Program) string {
	kernels := map[string]bool{}
	for _, k := range p.Kernels {
		kernels["@"+k.Name] = true
	}
	return tokens.ReplaceAllStringFunc(p.Source, func(token string) string {
		if kernels[token] {
			return "@" + kernelSymbol(token[1:])
		}
		return token
	})
}

// original is text about the renamed kernels in the program's own names.
func original(text string) string { return strings.ReplaceAll(text, kernelSymbol(""), "") }
