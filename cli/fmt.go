package cli

import (
	"errors"
	"io"
	"strings"

	"dmir/base/escape"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/dialect/verify"
	"dmir/syntax/ast"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

type fmtCmd struct {
	Files   []string `arg:"" complete:"file:dmir,mlir" help:"Files or folders; '-' formats stdin to stdout."`
	Check   bool     `help:"Change nothing; name the files that are not formatted and exit 1." xor:"check"`
	Diff    bool     `help:"Change nothing; print what would change, and exit 1 if anything would." xor:"diff"`
	Generic bool     `help:"Print MLIR's generic form, which mlir-opt reads, to stdout; the file stays as it is." xor:"check,diff"`
}

// Help is what --help adds.
func (fmtCmd) Help() string {
	return "Formatting changes white space only. A file with syntax errors is left as it is and reported.\n" +
		"Exit status: 0 done, 1 --check or --diff found a file that is not formatted, 2 a file could not be read, parsed or written."
}

// Run formats every file it can, and fails at the end if there was one it could not.
func (c fmtCmd) Run(a *app) error {
	files, err := expand(c.Files)
	if err != nil {
		return err
	}
	unformatted, failed := false, false
	for _, path := range files {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		changed, err := c.file(a, path)
		switch {
		case err != nil:
			failed = true
			var status exitStatus
			if !errors.As(err, &status) {
				a.status(err)
			}
		case changed:
			unformatted = true
		}
	}
	switch {
	case failed:
		return exitStatus(exitFailed)
	case unformatted && (c.Check || c.Diff):
		return exitStatus(exitFindings)
	}
	return nil
}

// file formats one file; changed reports whether its layout differed.
func (c fmtCmd) file(a *app, path string) (changed bool, err error) {
	src, err := a.read(path)
	if err != nil {
		return false, err
	}
	tree, err := await(a.ctx, func() (*ast.File, error) { return parse.File(src), nil })
	if err != nil {
		return false, err
	}
	if hasErrors(tree.Diags) {
		printErrors(a.stderr, src, tree.Diags)
		return false, exitStatus(exitFailed)
	}
	if c.Generic {
		return false, generic(a, src, tree)
	}
	text, err := await(a.ctx, func() (string, error) { return format.File(tree), nil })
	if err != nil {
		return false, err
	}
	changed = text != src.Text()
	switch {
	case c.Check && !c.Diff:
		if changed {
			escape.Fprintf(a.stdout, "%s\n", src.Path)
		}
	case c.Diff:
		err = a.diff(src.Path, src.Text(), text)
	case path == "-":
		_, err = io.WriteString(a.stdout, text)
	case changed:
		err = write(path, text)
	}
	return changed, err
}

// generic prints the modules of a file in generic form.
func generic(a *app, src *source.File, tree *ast.File) error {
	if names := scope.Build(tree, op.NeedsSymbol).Diags; hasErrors(names) {
		printErrors(a.stderr, src, names)
		return exitStatus(exitFailed)
	}
	var out []string
	for _, m := range lower.File(tree) {
		if diags := append(m.Diags, verify.Module(m)...); hasErrors(diags) {
			printErrors(a.stderr, src, diags)
			return exitStatus(exitFailed)
		}
		text, err := print.Generic(m, print.Locations)
		if err != nil {
			return err
		}
		out = append(out, text)
	}
	_, err := io.WriteString(a.stdout, strings.Join(out, "// -----\n"))
	return err
}
