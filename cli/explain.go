package cli

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"dmir/analysis/lint"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

type explainCmd struct {
	All  bool   `help:"Everything on one page, in Markdown."`
	Rule string `arg:"" optional:"" complete:"article" help:"A code (DM201), the start of codes (DM20), a name (fusible-into-producer) or an op (dm.softmax); without it, the list of all."`
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
	if m, ok := op.Means(unqualified(c.Rule)); ok && e.Code == "" {
		fmt.Fprintf(a.stdout, "# dm.%s\n\n", m.Def.Name)
		if m.Foreign {
			fmt.Fprintf(a.stdout, "%s is %s in this dialect.\n\n", strings.TrimPrefix(c.Rule, op.Prefix), m)
		}
		_, err := fmt.Fprintln(a.stdout, strings.TrimSuffix(m.Def.Markdown(), "\n"))
		return err
	}
	if family := family(c.Rule); len(family) > 0 && e.Code == "" {
		return listCodes(a.stdout, family)
	}
	if e.Code == "" {
		return &failure{"DM610", c.Rule, "is not a rule, diagnostic or op of dmir", likely(c.Rule)}
	}
	_, err := io.WriteString(a.stdout, e.Markdown())
	return err
}

var codeStart = regexp.MustCompile(`^DM\d*X*$`)

// family are the codes that begin as prefix does: "DM20" or "DM20x", without regard
// to case.
func family(prefix string) []diag.Code {
	prefix = strings.ToUpper(prefix)
	if !codeStart.MatchString(prefix) {
		return nil
	}
	prefix = strings.TrimRight(prefix, "X")
	return slices.DeleteFunc(diag.Codes(), func(c diag.Code) bool { return !strings.HasPrefix(c.Code, prefix) })
}

func list(w io.Writer) error {
	if err := listCodes(w, diag.Codes()); err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\nOP\tWHAT IT COMPUTES")
	for _, d := range op.All() {
		fmt.Fprintf(tw, "dm.%s\t%s\n", d.Name, upperFirst(strings.TrimSuffix(d.Summary, ".")))
	}
	return tw.Flush()
}

// unqualified is a name without the packages in front of it, with which people write it: torch.nn.Linear, F.gelu.
func unqualified(name string) string {
	if strings.HasPrefix(name, op.Prefix) {
		return name
	}
	return name[strings.LastIndexByte(name, '.')+1:]
}

func listCodes(w io.Writer, codes []diag.Code) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CODE\tNAME\tFIX\tMEANING")
	for _, a := range codes {
		fix := "-"
		if r := lint.Lookup(a.Code); r != nil && r.Fix != lint.NoFix {
			fix = string(r.Fix)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", a.Code, a.Name, fix, upperFirst(a.Summary))
	}
	return tw.Flush()
}

// likely is a suggestion for an unknown word.
func likely(word string) string {
	if codeStart.MatchString(strings.ToUpper(word)) {
		return nearCodes(word)
	}
	var known []string
	for _, a := range diag.Codes() {
		known = append(known, a.Code, a.Name)
	}
	if near := op.Like(unqualified(word)); len(near) > 0 {
		return "did you mean " + near[0].Def.FullName() + "?"
	}
	if s := diag.Suggest(word, known); s != "" {
		return "did you mean " + s + "?"
	}
	return "dmir explain lists them"
}

// nearCodes names the codes nearest to one that does not exist: those of the longest
// start that it shares with any.
func nearCodes(word string) string {
	for n := len(word) - 1; n > len("DM"); n-- {
		var near []string
		for _, c := range family(word[:n]) {
			near = append(near, c.Code+" "+c.Name)
		}
		if more := len(near) - 5; more > 0 {
			near = append(near[:5], fmt.Sprintf("and %d more (dmir explain %s)", more, strings.ToUpper(word[:n])))
		}
		if near != nil {
			return "the nearest are " + strings.Join(near, ", ")
		}
	}
	return "dmir explain lists them"
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
