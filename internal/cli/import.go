package cli

import (
	"io"
	"strings"

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
	p, err := await(a.ctx, func() (*program.Program, error) { return imported(src, program.Options{}), nil })
	switch {
	case err != nil:
		return err
	case p == nil:
		return &failure{"DM619", src.Path, "holds no op of a dialect that is imported", "name a file in StableHLO; a program in the dialect needs no import"}
	case p.HasErrors():
		printErrors(a.stderr, src, p.Diags)
		return exitStatus(exitFailed)
	}
	text, err := await(a.ctx, func() (string, error) { return sections(p) })
	if err != nil {
		return err
	}
	if c.Output == "" {
		_, err = io.WriteString(a.stdout, text)
		return err
	}
	return write(c.Output, text)
}

// sections is the text of all modules of p, as people write it.
func sections(p *program.Program) (string, error) {
	var texts []string
	for _, m := range p.Modules {
		text, err := print.Source(m)
		if err != nil {
			return "", err
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n// -----\n\n"), nil
}
