package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"dmir/base/escape"
)

// Markdown prints what changed as tables for a comment on a pull request: the
// functions, and below, folded, the ops that make the difference.
func (d *Diff) Markdown(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "### Data movement: %s → %s\n\n", code(d.Old), code(d.New))
	if d.Same {
		fmt.Fprintln(out, "No function moves, computes, takes or holds anything else than before.")
		d.breachList(out)
		return out.Flush()
	}
	fmt.Fprintln(out, "| function | moved | FLOP | time | peak |\n|---|---|---|---|---|")
	same := 0
	for _, f := range d.Functions {
		if f.Status == StatusSame {
			same++
			continue
		}
		name := code("@" + f.Name)
		if f.OldName != "" {
			name += ", before " + code("@"+f.OldName)
		} else if f.Status != StatusChanged {
			name += " " + f.Status
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", name, prose(f.Moved.String()), prose(f.FLOP.String()), prose(f.Time.String()), prose(f.Peak.String()))
	}
	if same > 0 {
		fmt.Fprintf(out, "\n%s unchanged.\n", count(same, "function"))
	}
	for _, f := range d.Functions {
		if f.Status != StatusChanged || len(f.Ops) == 0 {
			continue
		}
		fmt.Fprintf(out, "\n<details><summary>%s of @%s</summary>\n\n| | line | op | result | moved | time | |\n|---|---:|---|---|---|---|---|\n", count(len(f.Ops), "op"), html(f.Name))
		for _, o := range f.Ops {
			note := o.Note
			if o.OldOp != "" {
				note = "before " + o.OldOp
			}
			fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %s | %s |\n", marks[o.Status].text, o.At(), code(o.Op), code(o.Result), prose(o.Moved.String()), prose(o.Time.String()), prose(note))
		}
		fmt.Fprintln(out, "\n</details>")
	}
	d.breachList(out)
	return out.Flush()
}

func (d *Diff) breachList(w io.Writer) {
	if d.Breaches == nil {
		return
	}
	if len(d.Breaches) == 0 {
		fmt.Fprintln(w, "\nWithin budget.")
		return
	}
	fmt.Fprintln(w, "\n**Over budget**")
	fmt.Fprintln(w)
	for _, b := range d.Breaches {
		fmt.Fprintf(w, "- %s:%d: %s\n", code(d.New), b.Line, prose(b.Message))
	}
}

var (
	proseEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "<", "&lt;", "`", "\\`", "[", `\[`)
	htmlEscapes  = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
)

// prose is text in which nothing is markup, in a cell of a table.
func prose(s string) string { return proseEscapes.Replace(escape.Terminal(s)) }

func html(s string) string { return htmlEscapes.Replace(escape.Terminal(s)) }

// code is s as code, in a cell of a table.
func code(s string) string {
	if s == "" {
		return ""
	}
	s = strings.ReplaceAll(escape.Terminal(s), "|", `\|`)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}
