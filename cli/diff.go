package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"dmir/analysis/program"
	panel "dmir/analysis/report"
	"dmir/base/escape"
	"dmir/syntax/diag"
)

type diffCmd struct {
	targeting
	Budget       tolerance `help:"Fail if the bytes moved, time or peak memory of a function grow by more than this share (0 by default) or exceed its own budget." placeholder:"[5%]"`
	By           string    `help:"Compare by the lines, functions, modules or name scopes of the Python program that the versions were traced from: line, function, module or scope." enum:",line,function,module,scope" default:"" placeholder:"PART"`
	Planned      bool      `help:"With --by, compare the versions as they are compiled."`
	Top          int       `help:"With --by, list this many changes of each function only, the greatest." placeholder:"N"`
	AsWritten    bool      `help:"With --budget, compare the versions as written, op by op, not as they are compiled."`
	OutputFormat string    `help:"text, json, github or markdown." enum:"text,json,github,markdown" default:"text"`
	Old          string    `arg:"" complete:"file:dmir,mlir,onnx,json" help:"The older version: a file, git:REV for NEW as it was, or git:REV:PATH."`
	New          string    `arg:"" complete:"file:dmir,mlir,onnx,json" help:"The newer version; '-' is stdin."`
}

// Help is what --help adds.
func (diffCmd) Help() string {
	return "The gate compares what the compiled programs cost, or the text where it cannot be compiled; the table is of the text.\n" +
		"Exit status: 0 done, and within budget where that was asked; 1 beyond it; 2 could not compare.\n" +
		"As a gate in CI: dmir diff --budget --output-format github git:origin/main layer.dmir"
}

// tolerance is a flag with an optional value: --budget, --budget 5%,
// --budget=0.05.
type tolerance struct {
	asked bool
	share float64
}

// Decode reads the value if there is one: after "=" anything, else a percentage.
func (t *tolerance) Decode(ctx *kong.DecodeContext) error {
	t.asked = true
	next := ctx.Scan.Peek()
	text, ok := next.Value.(string)
	if !ok || next.Type != kong.FlagValueToken && !isPercentage(text) {
		return nil
	}
	ctx.Scan.Pop()
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		x /= 100
	}
	if err != nil || !(x >= 0 && x <= 1000) { // also NaN
		return fmt.Errorf("%q is not a share; write --budget 5%%", text)
	}
	t.share = x
	return nil
}

func isPercentage(text string) bool {
	number, ok := strings.CutSuffix(text, "%")
	_, err := strconv.ParseFloat(number, 64)
	return ok && err == nil
}

// Run compares the two versions.
func (c diffCmd) Run(a *app) error {
	if c.AsWritten && !c.Budget.asked {
		return &failure{"DM612", "--as-written", "has no meaning without --budget", "add --budget, or remove it"}
	}
	if c.By == "" && (c.Planned || c.Top != 0) {
		return &failure{"DM612", "--planned and --top", "have no meaning without --by", "add --by line, or remove them"}
	}
	if c.By != "" && (c.Budget.asked || c.OutputFormat != "text" && c.OutputFormat != "json") {
		return &failure{"DM612", "--by " + c.By, "lists changes, as text or JSON, and has no gate", "run dmir diff --budget without it"}
	}
	if err := sensibleVersions(c.Old, c.New); err != nil {
		return err
	}
	p, err := c.load(a, c.New)
	if err != nil {
		return err
	}
	old, name, err := c.version(a, c.Old, c.New, p)
	if err != nil {
		return err
	}
	if err := c.bound(p, old); err != nil {
		return err
	}
	if c.By != "" {
		return c.attribute(a, old, p)
	}
	d, err := await(a.ctx, func() (panel.Data, error) {
		return panel.Build(p, panel.KindDiff, "", panel.Options{Old: old, OldName: name, Gate: c.Budget.asked, Tolerance: c.Budget.share, AsWritten: c.AsWritten, Context: a.ctx})
	})
	if err != nil {
		return err
	}
	if err := c.print(a, p, d); err != nil {
		return err
	}
	if len(d.Diff.Breaches) > 0 {
		return exitStatus(exitFindings)
	}
	return nil
}

func (c diffCmd) print(a *app, p *program.Program, d panel.Data) error {
	switch c.OutputFormat {
	case "json":
		return writeJSON(a.stdout, d)
	case "markdown":
		return d.Diff.Markdown(a.stdout)
	case "github":
		diffGitHub(a.stdout, d)
		return nil
	}
	if err := d.Diff.Text(a.stdout, panel.TextOptions{Color: styleOf(a.stdout).Color, Width: a.width()}); err != nil {
		return err
	}
	for _, b := range d.Diff.Breaches {
		fmt.Fprintln(a.stdout)
		diag.Text(a.stdout, p.Src, breach(p, b), styleOf(a.stdout))
	}
	return nil
}

// breach returns a breach of the gate as a diagnostic.
func breach(p *program.Program, b panel.Breach) diag.Diagnostic {
	d := diag.Diagnostic{Code: "DM501", Name: "budget-exceeded", Severity: diag.Error, Message: b.Message, Label: "over budget"}
	if b.Grown {
		d.Code, d.Name, d.Label = "DM502", diag.Find("DM502").Name, "more than before"
	}
	if d.Help = "move or hold less, or raise the budget"; b.Open {
		d.Label, d.Help = "cannot be compared", "give sizes with --bind"
	} else if b.Grown {
		d.Help = "move or hold less, or allow an increase: --budget 5%"
	}
	if f := p.Func(b.Function); f != nil {
		d.Span = panel.FunctionSpan(f.Func)
	}
	return d
}

// diffGitHub writes the changes as annotations of GitHub Actions.
func diffGitHub(w io.Writer, d panel.Data) {
	annotate := func(level, title string, at panel.Place, text string) {
		fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d,endLine=%d,endColumn=%d,title=%s::%s\n", level, githubProperty.Replace(escape.Terminal(d.File)),
			at.Line, at.Column, at.Line, at.EndColumn, githubProperty.Replace(title), githubText.Replace(escape.Lines(text)))
	}
	for _, f := range d.Diff.Functions {
		if f.Status != panel.StatusChanged {
			continue
		}
		annotate("notice", "dmir diff", f.Place, fmt.Sprintf("@%s\nmoved %s\ntime %s\npeak %s", escape.Terminal(f.Name), f.Moved, f.Time, f.Peak))
	}
	for _, b := range d.Diff.Breaches {
		title := "DM501 budget-exceeded"
		if b.Grown {
			title = "DM502 " + diag.Find("DM502").Name
		}
		annotate("error", title, b.Place, b.Message)
	}
}
