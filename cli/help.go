package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"dmir/syntax/diag"
)

type helpCmd struct {
	Man     bool     `help:"Write the manual page of dmir, for man."`
	Command []string `arg:"" optional:"" complete:"command" help:"The command to describe; without it, the list of all."`
}

// Help is what --help adds.
func (helpCmd) Help() string {
	return "dmir help --man > dmir.1; man -l dmir.1"
}

// Run prints what COMMAND --help does.
func (c helpCmd) Run(a *app) error {
	if c.Man {
		return manPage(a.stdout, a.parser.Model)
	}
	ctx, err := kong.Trace(a.parser, c.Command)
	if err != nil {
		return err
	}
	if ctx.Error != nil && len(c.Command) > 0 && ctx.Selected() == nil {
		var names []string
		for _, n := range commands(a.parser.Model.Node) {
			names = append(names, n.text)
		}
		help := "dmir help lists them"
		if s := diag.Suggest(c.Command[0], names); s != "" {
			help = "did you mean dmir help " + s + "?"
		}
		return &failure{"DM612", "help " + strings.Join(c.Command, " "), "is not a command", help}
	}
	return ctx.PrintUsage(false)
}

// manPage writes the manual page: every command with its flags, as --help has them.
func manPage(w io.Writer, m *kong.Application) error {
	p := &page{w: w}
	p.line(`.TH DMIR 1 "" "dmir %s" "User Commands"`, version)
	p.line(".SH NAME\ndmir \\- %s", roff("analyses, checks, compiles and runs programs in the data-movement dialect of MLIR"))
	p.line(".SH SYNOPSIS\n.B dmir\n.I COMMAND\n[\\fIflags\\fR] [\\fIarguments\\fR]")
	p.line(".SH COMMANDS")
	for _, n := range m.Children {
		if n.Hidden {
			continue
		}
		p.line(".SS %s", roff(strings.TrimPrefix(n.Summary(), m.Name+" ")))
		p.line("%s", roff(n.Help))
		if n.Detail != "" {
			p.line(".PP\n.nf\n%s\n.fi", roff(n.Detail))
		}
		for _, v := range n.Positional {
			p.item(strings.ToUpper(v.Name), v.Help)
		}
		for _, f := range n.Flags {
			if !f.Hidden {
				p.item(f.String(), f.Help)
			}
		}
	}
	p.line(".SH FLAGS OF EVERY COMMAND")
	for _, f := range m.Flags {
		p.item(f.String(), f.Help)
	}
	p.line(".SH EXIT STATUS")
	for _, s := range exitStatuses {
		p.item(fmt.Sprint(s.status), s.about)
	}
	p.line(".SH ENVIRONMENT")
	for _, e := range environment {
		p.item(e.name, e.about)
	}
	return p.err
}

// exitStatuses are those of all commands; --help of a command says more.
var exitStatuses = []struct {
	status int
	about  string
}{
	{exitOK, "All is well."},
	{exitFindings, "The program has errors or findings, or a check or a budget failed."},
	{exitFailed, "The command could not do its work."},
}

// environment are the variables that dmir reads.
var environment = []struct{ name, about string }{
	{"DMIR_CACHE", "Folder of compiled code and of NVRTC."},
	{"DMIR_NVRTC", "Path of the NVRTC library."},
	{"CXX", "The C++20 compiler of the emulator."},
	{"COLUMNS", "Width of tables, where it is not that of the terminal."},
	{"NO_COLOR", "Any value: no colours."},
}

// page is a text in roff; it keeps the first error.
type page struct {
	w   io.Writer
	err error
}

func (p *page) line(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format+"\n", args...); p.err == nil {
		p.err = err
	}
}

func (p *page) item(name, about string) {
	p.line(".TP\n.B %s\n%s", roff(name), roff(about))
}

// roff escapes a text: "\" and "-", and "." or "'" at the start of a line.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
