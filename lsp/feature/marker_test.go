package feature_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/dialect/op"
	"dmir/lsp/feature"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

var update = flag.Bool("update", false, "write what the features answer into the files")

// TestMarkers holds the features to what stands in testdata/*.txtar. A file
// "x.dmir" in an archive is the text; behind each of its lines may stand
// comments with what the features answer about that line:
//
//	//@hint LABEL | LABEL      the hints, in order
//	//@diag SEVERITY CODE 3-7 MESSAGE   a diagnostic; columns in bytes from 1
//	//@lens TITLE -> COMMAND KIND  a lens, and the kind of panel or view that it opens
//	//@heat time=8 bytes=5     the levels of the line's heat
//	//@fix CODE TITLE          a fix offered on the line
//	//@def(%x) 3:5             the definition of the first %x on the line
//	//@refs(%x) 3:5 4:9        its references, the definition included
//	//@action(%x) TITLE | TITLE   what is offered at the cursor in front of the first %x
//	//@type(%x) 1:1            the definition of the alias that spells its type
//	//@highlight(%x) w3:5 r4:9 its appearances, where it is written and read
//	//@callers(@f) @g 7:3      the functions that call it, each with the places
//	//@callees(@f) @h 4:3      those that it calls
//	//@rename(%x y) 3:5=%y     the edits that call it y, or why it cannot be
//	//@link 3-9 a.dmir         a file named on the line
//
// Answers and comments must match one to one for the kinds that the archive's
// comment lists after "check:"; what has a name in parentheses is asked for by
// its comment.
// A file "hover LINE NAME" is the hover on the first NAME of that line, the
// registry's documentation left out. With the cursor behind the first NAME of
// the line, "complete LINE NAME" are the first completions offered, "signature
// LINE NAME" is the signature with its active part underlined, and "select LINE
// NAME" are the selections, from the inside out; "tokens LINE" is how the line
// is coloured. A "|" ends a NAME that ends in a blank. Lines count without the comments of this kind. The archive's comment may bind
// symbols ("bind: n=512") and give measured times ("ran: f 1200 5=300 6=40").
func TestMarkers(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := txtar.Format(ar)
			got := txtar.Format(answer(t, ar))
			if string(got) == string(want) {
				return
			}
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("the answers differ from the comments (-update writes them):\n%s", firstDifference(string(want), string(got)))
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	var b strings.Builder
	for i, shown := 0, 0; i < max(len(w), len(g)) && shown < 10; i++ {
		line := func(s []string) string {
			if i < len(s) {
				return s[i]
			}
			return "(end)"
		}
		if line(w) != line(g) {
			fmt.Fprintf(&b, "%d\n- %s\n+ %s\n", i+1, line(w), line(g))
			shown++
		}
	}
	return b.String()
}

// answer is the archive with the features' answers in place of its comments.
func answer(t *testing.T, ar *txtar.Archive) *txtar.Archive {
	t.Helper()
	out := &txtar.Archive{Comment: ar.Comment}
	var p *program.Program
	for _, f := range ar.Files {
		switch {
		case strings.HasSuffix(f.Name, ".dmir") || strings.HasSuffix(f.Name, ".mlir"):
			text, asked := strip(string(f.Data))
			opts, ran := options(t, string(ar.Comment))
			p = program.Load(source.New(f.Name, text), opts)
			m := &marker{p: p, ran: ran, lines: make([][]string, p.Src.Lines())}
			m.all(fields(string(ar.Comment), "check:"))
			for _, q := range asked {
				m.ask(t, q)
			}
			f.Data = []byte(m.text())
		default:
			words := append(strings.SplitN(f.Name, " ", 3), "", "")
			line, err := strconv.Atoi(words[1])
			answer := answers[words[0]]
			if err != nil || p == nil || answer == nil {
				t.Fatalf("malformed name %q", f.Name)
			}
			words[2], _, _ = strings.Cut(words[2], "|")
			text := answer(p, find(t, p, line-1, words[2]), words[2])
			if text == "" {
				text = "nothing"
			}
			f.Data = []byte(strings.TrimRight(text, "\n") + "\n")
		}
		out.Files = append(out.Files, f)
	}
	return out
}

// answers are what files of an archive can ask about the first appearance, at
// off, of a text on a line.
var answers = map[string]func(p *program.Program, off int, name string) string{
	"hover": func(p *program.Program, off int, name string) string {
		h := feature.HoverAt(p, p.Names(), off, false)
		if h == nil {
			return ""
		}
		if d := op.Lookup(name); d != nil { // the registry's tests hold its text
			return strings.Replace(h.Text, d.Markdown(), "(documentation)", 1)
		}
		return h.Text
	},
	"complete": func(p *program.Program, off int, name string) string {
		var b strings.Builder
		found := feature.Complete(p, off+len(name))
		if typed := p.Src.Slice(found.Span); typed != "" {
			fmt.Fprintf(&b, "typed: %s\n", typed)
		}
		for i, c := range found.Items {
			if i == 8 {
				fmt.Fprintf(&b, "and %d more\n", len(found.Items)-i)
				break
			}
			fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%-24s %s", c.Label, c.Detail), " "))
		}
		return b.String()
	},
	"signature": func(p *program.Program, off int, name string) string {
		s := feature.SignatureAt(p, off+len(name))
		if s == nil {
			return ""
		}
		mark := ""
		if s.Active >= 0 {
			a := s.Params[s.Active]
			mark = strings.Repeat(" ", utf8.RuneCountInString(s.Label[:a.Start])) + strings.Repeat("^", utf8.RuneCountInString(s.Label[a.Start:a.End])) + "\n" + a.Doc
		}
		return s.Label + "\n" + mark
	},
	"select": func(p *program.Program, off int, name string) string {
		var b strings.Builder
		for _, s := range feature.Selections(p, off+len(name)) {
			fmt.Fprintf(&b, "%.100q\n", p.Src.Slice(s))
		}
		return b.String()
	},
	"tokens": func(p *program.Program, off int, _ string) string {
		var b strings.Builder
		for k := range feature.Tokens(p, source.Span{Start: off, End: off}) {
			def := ""
			if k.Def {
				def = " definition"
			}
			fmt.Fprintf(&b, "%-10s %s%s\n", kindNames[k.Kind], p.Src.Slice(k.Span), def)
		}
		return b.String()
	},
}

var kindNames = map[feature.TokenKind]string{
	feature.NamespaceToken: "namespace", feature.FunctionToken: "function", feature.VariableToken: "variable",
	feature.ParameterToken: "parameter", feature.TypeToken: "type", feature.PropertyToken: "property",
	feature.KeywordToken: "keyword", feature.StringToken: "string", feature.NumberToken: "number",
	feature.CommentToken: "comment", feature.MacroToken: "macro", feature.LabelToken: "label", feature.AxisToken: "axis",
}

var markerLine = regexp.MustCompile(`^\s*//@(\w+)(?:\(([^)]*)\))?`)

type question struct {
	line       int
	kind, name string
}

// strip takes the comments of this test out of a text.
func strip(text string) (string, []question) {
	var kept []string
	var asked []question
	for _, line := range strings.SplitAfter(text, "\n") {
		if m := markerLine.FindStringSubmatch(line); m == nil {
			kept = append(kept, line)
		} else if m[2] != "" {
			asked = append(asked, question{len(kept) - 1, m[1], m[2]})
		}
	}
	return strings.Join(kept, ""), asked
}

// fields are the words behind a key of the archive's comment.
func fields(comment, key string) []string {
	for _, line := range strings.Split(comment, "\n") {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strings.Fields(rest)
		}
	}
	return nil
}

func options(t *testing.T, comment string) (program.Options, *feature.Times) {
	t.Helper()
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	o := program.Options{Bind: map[string]int64{}}
	for _, f := range fields(comment, "bind:") {
		name, n, _ := strings.Cut(f, "=")
		o.Bind[name] = number(n)
	}
	var ran *feature.Times
	for i, f := range fields(comment, "ran:") {
		switch line, ns, ok := strings.Cut(f, "="); {
		case i == 0:
			ran = &feature.Times{Func: f, Device: "reference", Ops: map[int]int64{}}
		case !ok:
			ran.Ns = number(f)
		default:
			ran.Ops[int(number(line))] = number(ns)
		}
	}
	return o, ran
}

type marker struct {
	p     *program.Program
	ran   *feature.Times
	lines [][]string
}

func (m *marker) at(off int, format string, args ...any) {
	line := m.p.Src.Pos(off).Line
	m.lines[line] = append(m.lines[line], "//@"+fmt.Sprintf(format, args...))
}

func (m *marker) pos(off int) string {
	q := m.p.Src.Pos(off)
	return fmt.Sprintf("%d:%d", q.Line+1, q.Col+1)
}

func (m *marker) all(kinds []string) {
	whole := source.Span{End: m.p.Src.Len()}
	found := slices.Concat(m.p.Diags, lint.Run(context.Background(), m.p, lint.Options{}))
	if slices.Contains(kinds, "hint") {
		labels := map[int][]string{}
		var order []int
		for _, h := range feature.Hints(m.p, m.ran, nil, whole) {
			if len(labels[h.Offset]) == 0 {
				order = append(order, h.Offset)
			}
			labels[h.Offset] = append(labels[h.Offset], h.Label.String())
		}
		for _, off := range order {
			m.at(off, "hint %s", strings.Join(labels[off], " | "))
		}
	}
	if slices.Contains(kinds, "link") {
		for _, l := range feature.Links(source.New("/w/"+m.p.Src.Path, m.p.Src.Text())) {
			from := m.p.Src.Pos(l.Span.Start)
			m.at(l.Span.Start, "link %d-%d %s", from.Col+1, from.Col+1+l.Span.Len(), strings.TrimPrefix(filepath.ToSlash(l.Path), "/w/"))
		}
	}
	if slices.Contains(kinds, "lens") {
		for _, l := range feature.Lenses(m.p, feature.LensOptions{Devices: feature.Devices{Run: "reference", Profile: "the emulator"}, Saved: true}) {
			m.at(l.Span.Start, "lens %s", strings.TrimSpace(l.Title+" -> "+l.Command+" "+l.Panel+l.View))
			for _, l := range l.More {
				m.at(l.Span.Start, "lens … %s", strings.TrimSpace(l.Title+" -> "+l.Command+" "+l.Panel+l.View))
			}
		}
	}
	if slices.Contains(kinds, "heat") {
		m.heat(whole)
	}
	if slices.Contains(kinds, "diag") {
		for _, d := range found {
			m.diag(d)
		}
	}
	if slices.Contains(kinds, "fix") {
		for _, f := range feature.FixesAt(found, whole) {
			m.at(f.Diagnostic.Span.Start, "fix %s %s", f.Diagnostic.Code, f.Title)
		}
	}
}

// heat is the levels of each line by all that lines are coloured by.
func (m *marker) heat(span source.Span) {
	levels := map[int]string{}
	var order []int
	for _, by := range []string{feature.HeatTime, feature.HeatBytes, feature.HeatWaste} {
		heats, _ := feature.Heats(m.p, by, span)
		for _, h := range heats {
			if levels[h.Span.Start] == "" {
				order = append(order, h.Span.Start)
			}
			levels[h.Span.Start] += fmt.Sprintf(" %s=%d", by, h.Level)
		}
	}
	slices.Sort(order)
	for _, off := range order {
		m.at(off, "heat%s", levels[off])
	}
}

func (m *marker) diag(d diag.Diagnostic) {
	from := m.p.Src.Pos(d.Span.Start)
	m.at(d.Span.Start, "diag %s %s %d-%d %s", d.Severity, d.Code, from.Col+1, from.Col+1+d.Span.Len(), d.Message)
}

func (m *marker) ask(t *testing.T, q question) {
	t.Helper()
	name, to, _ := strings.Cut(q.name, " ")
	off := find(t, m.p, q.line, name)
	var spans []source.Span
	switch q.kind {
	case "def":
		spans = feature.Definition(m.p.Names(), off)
	case "refs":
		spans = feature.References(m.p.Names(), off, true)
	case "type":
		spans = feature.TypeDefinition(m.p, off)
	case "action":
		var titles []string
		found := slices.Concat(m.p.Diags, lint.Run(context.Background(), m.p, lint.Options{}))
		for _, a := range feature.Actions(m.p, found, source.Span{Start: off, End: off}, func(string) bool { return true }) {
			titles = append(titles, a.Title)
		}
		m.lines[q.line] = append(m.lines[q.line], fmt.Sprintf("//@action(%s) %s", q.name, strings.Join(titles, " | ")))
		return
	case "highlight":
		var marks []string
		for _, h := range feature.Highlights(m.p.Names(), off) {
			kind := "r"
			if h.Write {
				kind = "w"
			}
			marks = append(marks, kind+m.pos(h.Span.Start))
		}
		m.answered(q, marks)
		return
	case "callers", "callees":
		calls := feature.Callers(m.p, off)
		if q.kind == "callees" {
			calls = feature.Callees(m.p, off)
		}
		var answers []string
		for _, c := range calls {
			answers = append(answers, c.Name)
			for _, at := range c.Places {
				answers = append(answers, m.pos(at.Start))
			}
		}
		m.answered(q, answers)
		return
	case "rename":
		edits, err := feature.Rename(m.p.Names(), off, to)
		answers := []string{}
		if err != nil {
			answers = []string{err.Error()}
		}
		for _, e := range edits {
			answers = append(answers, m.pos(e.Span.Start)+"="+e.Text)
		}
		m.answered(q, answers)
		return
	default:
		t.Fatalf("unknown comment //@%s", q.kind)
	}
	var places []string
	for _, s := range spans {
		places = append(places, m.pos(s.Start))
	}
	m.answered(q, places)
}

func (m *marker) answered(q question, answers []string) {
	m.lines[q.line] = append(m.lines[q.line], strings.TrimSpace(fmt.Sprintf("//@%s(%s) %s", q.kind, q.name, strings.Join(answers, " "))))
}

// text is the program's text with the answers behind its lines.
func (m *marker) text() string {
	var b strings.Builder
	for i, line := range strings.SplitAfter(m.p.Src.Text(), "\n") {
		b.WriteString(line)
		for _, a := range m.lines[i] {
			b.WriteString(a + "\n")
		}
	}
	return b.String()
}

// find is the offset of the first name on a 0-based line.
func find(t *testing.T, p *program.Program, line int, name string) int {
	t.Helper()
	i := strings.Index(p.Src.Line(line), name)
	if i < 0 {
		t.Fatalf("no %s on line %d", name, line+1)
	}
	return p.Src.LineStart(line) + i
}
