package cli

import (
	"io"

	"dmir/analysis/program"
	"dmir/dialect/print"
	"dmir/internal/atomicfile"
)

type importCmd struct {
	Output string `short:"o" complete:"file" help:"File to write (default: stdout)." placeholder:"FILE.dmir"`
	File   string `arg:"" complete:"file:mlir" help:"A program in StableHLO (or mhlo, chlo), in pretty or generic form; '-' is stdin."`
}

// Help is what --help adds.
func (importCmd) Help() string {
	return "Sections cut at '// -----' stay sections. Names of functions, arguments and values are kept, and locations.\n" +
		"dmir run and dmir cost take such files directly.\n" +
		"Exit status: 0 written, 2 the program has errors, or something without an equivalent in the dialect."
}

// Run writes the program as text in the dialect.
func (c importCmd) Run(a *app) error {
	if c.Output != "" {
		if err := atomicfile.Check(c.Output); err != nil {
			return cannotWrite(c.Output, err)
		}
	}
	src, err := a.read(c.File)
	if err != nil {
		return err
	}
	p, err := a.analyse(src, program.Options{})
	switch {
	case err != nil:
		return err
	case !p.Imported:
		return &failure{"DM619", src.Path, "holds no op of a dialect that is imported", "name a file in StableHLO; a program in the dialect needs no import"}
	case p.HasErrors():
		printErrors(a.stderr, src, p.Diags)
		return exitStatus(exitFailed)
	}
	text, err := await(a.ctx, func() (string, error) { return print.Sections(p.Modules) })
	if err != nil {
		return err
	}
	if c.Output == "" {
		_, err = io.WriteString(a.stdout, text)
		return err
	}
	return write(c.Output, text)
}
