package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"dmir/analysis/lint"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

type explainCmd struct {
	All  bool   `help:"Everything on one page, in Markdown."`
	Rule string `arg:"" optional:"" help:"A code (DM201), a name (fusible-into-producer) or an op (dm.softmax); without it, the list of all."`
}

// Run prints one article, or the list.
func (c explainCmd) Run(a *app) error {
	switch {
	case c.All:
		_, err := io.WriteString(a.stdout, rulesPage())
		return err
	case c.Rule == "":
		return list(a.stdout)
	}
	e := diag.Find(c.Rule)
	if m, ok := op.Means(c.Rule); ok && e.Code == "" {
		fmt.Fprintf(a.stdout, "# dm.%s\n\n", m.Def.Name)
		if m.Foreign {
			fmt.Fprintf(a.stdout, "%s is %s in this dialect.\n\n", strings.TrimPrefix(c.Rule, op.Prefix), m)
		}
		_, err := fmt.Fprintln(a.stdout, strings.TrimSuffix(m.Def.Markdown(), "\n"))
		return err
	}
	if e.Code == "" {
		return &failure{"DM610", c.Rule, "is not a rule, diagnostic or op of dmir", likely(c.Rule)}
	}
	_, err := io.WriteString(a.stdout, e.Markdown())
	return err
}

func list(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CODE\tNAME\tFIX\tMEANING")
	for _, a := range diag.Codes() {
		fix := "-"
		if r := lint.Lookup(a.Code); r != nil && r.Fix != lint.NoFix {
			fix = string(r.Fix)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", a.Code, a.Name, fix, upperFirst(a.Summary))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(tw, "\nOP\tWHAT IT COMPUTES")
	for _, d := range op.All() {
		fmt.Fprintf(tw, "dm.%s\t%s\n", d.Name, upperFirst(strings.TrimSuffix(d.Summary, ".")))
	}
	return tw.Flush()
}

// likely is a suggestion for an unknown word.
func likely(word string) string {
	var known []string
	for _, a := range diag.Codes() {
		known = append(known, a.Code, a.Name)
	}
	if near := op.Like(word); len(near) > 0 {
		return "did you mean " + near[0].Def.FullName() + "?"
	}
	if s := diag.Suggest(word, known); s != "" {
		return "did you mean " + s + "?"
	}
	return "dmir explain lists them"
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
