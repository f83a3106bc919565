package edittest

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A Writer edits a text at random.
type Writer struct {
	Text  string
	Limit int // bytes beyond which a text is replaced by the pool's first

	rnd  *rand.Rand
	pool []string // whole programs, of which lines are pasted
	done []undo   // undo history
	redo []undo
	burst
}

// undo takes one step back.
type undo []Edit

// burst is text that is being typed character by character.
type burst struct {
	at   int
	left string
}

// NewWriter starts with a text; pool are programs to paste from and to replace the
// text by.
func NewWriter(seed uint64, text string, pool []string) *Writer {
	return &Writer{Text: text, Limit: 40_000, rnd: rand.New(rand.NewPCG(seed, 0)), pool: pool}
}

// Step makes another edit.
func (w *Writer) Step() Step {
	var s Step
	switch {
	case w.left != "" && w.rnd.IntN(8) > 0:
		s = w.typeOn()
	default:
		s = w.any()
	}
	s.Look = w.rnd.IntN(3) > 0
	var back undo
	text := w.Text
	for i, e := range s.Edits {
		e = e.Fit(text)
		s.Edits[i] = e
		back = append(undo{{e.Start, e.Start + len(e.Text), text[e.Start:e.End]}}, back...)
		text = e.Apply(text)
		if s.Kind != "type on" && e.Start < w.at {
			w.left = "" // the cursor has moved
		}
	}
	w.Text = text
	switch s.Kind {
	case "undo":
		w.redo = append(w.redo, back)
	case "redo":
		w.done = append(w.done, back)
	default:
		w.done, w.redo = append(w.done, back), nil
	}
	if len(w.Text) > w.Limit { // pasted too often
		w.Text, w.done, w.redo = w.pool[0], nil, nil
		return Step{Kind: "start afresh", Edits: []Edit{{0, len(text), w.Text}}, Whole: true, Look: true}
	}
	return s
}

// any is an edit of a random kind, common ones more often.
func (w *Writer) any() Step {
	for {
		k := kinds[w.rnd.IntN(len(kinds))]
		if edits := k.edits(w); len(edits) > 0 {
			return Step{Kind: k.name, Edits: edits, Whole: strings.HasPrefix(k.name, "whole")}
		}
	}
}

func (w *Writer) typeOn() Step {
	_, size := utf8.DecodeRuneInString(w.left)
	c := w.left[:size]
	e := Edit{w.at, w.at, c}
	w.at, w.left = w.at+len(c), w.left[len(c):]
	return Step{Kind: "type on", Edits: []Edit{e}}
}

type kind struct {
	name  string
	edits func(*Writer) []Edit // none where the text has no place for it
}

var kinds []kind

func init() {
	for _, k := range []struct {
		weight int
		kind
	}{
		{6, kind{"digit", (*Writer).digit}},
		{5, kind{"letter of a name", (*Writer).nameLetter}},
		{3, kind{"rename everywhere", (*Writer).rename}},
		{4, kind{"bracket away", (*Writer).bracketAway}},
		{3, kind{"bracket or quote", func(w *Writer) []Edit { return w.insert(w.pick(brackets)) }}},
		{3, kind{"character", func(w *Writer) []Edit { return w.insert(w.pick(characters)) }}},
		{3, kind{"cut", (*Writer).cutOut}},
		{4, kind{"begin to type", (*Writer).begin}},
		{4, kind{"paste line", func(w *Writer) []Edit { return w.atLine(w.foreign(1)) }}},
		{2, kind{"paste lines", func(w *Writer) []Edit { return w.atLine(w.foreign(2 + w.rnd.IntN(8))) }}},
		{4, kind{"delete line", func(w *Writer) []Edit { return w.deleteLines(1) }}},
		{2, kind{"delete lines", func(w *Writer) []Edit { return w.deleteLines(2 + w.rnd.IntN(6)) }}},
		{3, kind{"duplicate line", (*Writer).duplicate}},
		{3, kind{"move lines", (*Writer).move}},
		{4, kind{"newline", func(w *Writer) []Edit { return w.insert(w.pick(newlines)) }}},
		{3, kind{"comment", (*Writer).comment}},
		{2, kind{"comment away", (*Writer).uncomment}},
		{3, kind{"snippet", func(w *Writer) []Edit { return w.atLine(w.pick(snippets)) }}},
		{2, kind{"line end", (*Writer).lineEnd}},
		{2, kind{"type", (*Writer).swapType}},
		{6, kind{"undo", func(w *Writer) []Edit { return pop(&w.done) }}},
		{2, kind{"redo", func(w *Writer) []Edit { return pop(&w.redo) }}},
		{1, kind{"whole, another", func(w *Writer) []Edit { return w.whole(w.pick(w.pool)) }}},
		{1, kind{"whole, the same", func(w *Writer) []Edit { return w.whole(w.Text) }}},
		{1, kind{"whole, cut off", func(w *Writer) []Edit { return w.whole(w.Text[:w.place()]) }}},
		{1, kind{"each half by itself", (*Writer).halves}},
		{2, kind{"several at once", (*Writer).several}},
	} {
		for range k.weight {
			kinds = append(kinds, k.kind)
		}
	}
}

var (
	brackets   = []string{"(", ")", "{", "}", "[", "]", "<", ">", "\"", "->", "'", "{-#", "#-}"}
	characters = []string{
		"a", "Z", "_", "%", "@", "^", "#", "!", ":", ",", "=", " ", "\t", "/", "//", "*", "?", "-", "0", "é", "日本", "😀", "𝄞",
		"\u0301", "\u2028", "\ufeff", "\x00", "\x7f",
	}
	newlines = []string{"\n", "\n", "\n", "\r\n", "\r", "\n\n\n", " \n", "// 😀\n"}
	snippets = []string{
		"// -----\n", "!t = tensor<4xf32>\n", "!t = tensor<8x?xf16>\n", "#a = #dm.at<hbm, order = [1, 0]>\n", "dm.mesh @m {x = 2, y = 4}\n", "!s = tensor<8x4xf32, #dm.at<split = @m[{x}, {y:(1)2, ?}]>>\n", "}\n", "{\n", "^bb1(%q: tensor<4xf32>):\n",
		"func.func @added() {\n", "func.func private @declared(tensor<4xf32>) -> tensor<4xf32>\n", "module {\n", "module @m attributes {a = 1} {\n",
		"  // dmir: ignore[DM201] because\n", "  // dmir: ignore[DM201, DM207]\n", "  %k = dm.kernel -> tensor<4xf32> {\n", "    dm.yield %k : tensor<4xf32>\n",
		"  %u = \"test.unknown\"(%u) {a = \"😀\"} : (i32) -> i32\n", "  %e = dm.exp %e : tensor<4xf32>\n", "  %0:2 = dm.\n", "  return\n",
		"  %r = dm.reshard %x : (tensor<8x4xf32>) -> tensor<8x4xf32, #dm.at<split = @m[{y}, {}], partial = max{x}>>\n", "  %r = dm.all_reduce add %r, axes = [\"x\"] : tensor<4xf32>\n",
		"  %c = func.call @added() : () -> tensor<4xf32>\n", "  \"unclosed\n", "  dm.add %a, %b : tensor<", "{-#\n", "#-}\n", "  loc(\"x\":1:2)\n",
		"func.func @added(%a: !t) -> !t attributes {dm.max_moved = \"1 kB\"} {\n  %0 = dm.relu %a : !t\n  %1 = dm.neg %0 : !t\n  return %1 : !t\n}\n",
	}
	typed = []string{
		"  %n = dm.relu %x : tensor<4xf32>\n", "  %y = \"dm.neg\"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n", " // 😀 why\n", "func.func @typed(%x: !t) {\n  return\n}\n",
		"{dim = 1 : i64}", " loc(\"é\":1:2)", "dm.kernel {\n  dm.yield\n}\n",
	}
	types = []string{"tensor<4xf32>", "tensor<8x?xf16>", "tensor<2x3xf32>", "f32", "!t", "tensor<*xf32>", "tensor<4x4xf32, #dm.at<smem>>", "tensor<4x4xf32, #dm.at<split = @m[{}, {x}]>>", "(tensor<4xf32>) -> tensor<4xf32>", "()"}
)

func (w *Writer) pick(from []string) string { return from[w.rnd.IntN(len(from))] }

// place is where an editor can have its cursor.
func (w *Writer) place() int { return fit(w.Text, w.rnd.IntN(len(w.Text)+1)) }

func (w *Writer) insert(text string) []Edit {
	at := w.place()
	return []Edit{{at, at, text}}
}

// match is a random match of an expression, by its submatch where it has one.
func (w *Writer) match(re *regexp.Regexp) (start, end int, ok bool) {
	all := re.FindAllStringSubmatchIndex(w.Text, -1)
	if len(all) == 0 {
		return 0, 0, false
	}
	m := all[w.rnd.IntN(len(all))]
	return m[len(m)-2], m[len(m)-1], true
}

var (
	digits     = regexp.MustCompile(`[0-9]`)
	names      = regexp.MustCompile(`[%@^!#][A-Za-z0-9_]+`)
	anyBracket = regexp.MustCompile(`[(){}\[\]<>"]|->`)
	comments   = regexp.MustCompile(`//[^\n]*`)
	tensors    = regexp.MustCompile(`tensor<[^>\n]*>`)
)

func (w *Writer) digit() []Edit {
	start, end, ok := w.match(digits)
	if !ok {
		return nil
	}
	return []Edit{{start, end, w.pick([]string{"0", "1", "2", "3", "4", "8", "9", "16", "?", "", "x"})}}
}

func (w *Writer) nameLetter() []Edit {
	start, end, ok := w.match(names)
	if !ok {
		return nil
	}
	at := start + 1 + w.rnd.IntN(end-start)
	if w.rnd.IntN(2) == 0 && at < end {
		return []Edit{{at, at + 1, ""}}
	}
	return []Edit{{at, at, w.pick([]string{"x", "0", "_", "#1"})}}
}

// rename replaces a name wherever it stands, as a rename by the server does, or
// leaves the last place out.
func (w *Writer) rename() []Edit {
	start, end, ok := w.match(names)
	if !ok {
		return nil
	}
	old := w.Text[start:end]
	to := old[:1] + w.pick([]string{"renamed", "x", "0", "t", "a", "added"})
	var edits []Edit
	for _, m := range names.FindAllStringIndex(w.Text, -1) {
		if w.Text[m[0]:m[1]] == old {
			edits = append([]Edit{{m[0], m[1], to}}, edits...) // the last one first: places stay
		}
	}
	if len(edits) > 1 && w.rnd.IntN(4) == 0 {
		edits = edits[1:]
	}
	return edits
}

func (w *Writer) bracketAway() []Edit {
	start, end, ok := w.match(anyBracket)
	if !ok {
		return nil
	}
	return []Edit{{start, end, ""}}
}

func (w *Writer) cutOut() []Edit {
	start := w.place()
	end := fit(w.Text, start+1+w.rnd.IntN(30))
	if w.rnd.IntN(10) == 0 {
		end = w.place()
	}
	if start == end {
		return nil
	}
	return []Edit{Edit{start, end, ""}.Fit(w.Text)}
}

// begin starts to type something.
func (w *Writer) begin() []Edit {
	w.left = w.pick(typed)
	w.at = w.place()
	if strings.HasPrefix(w.left, "  %") || strings.HasPrefix(w.left, "func") {
		w.at, _ = w.line()
	}
	s := w.typeOn()
	return s.Edits
}

// line is a random line, with its end.
func (w *Writer) line() (start, end int) {
	at := w.place()
	start = strings.LastIndexByte(w.Text[:at], '\n') + 1
	if n := strings.IndexByte(w.Text[at:], '\n'); n >= 0 {
		return start, at + n + 1
	}
	return start, len(w.Text)
}

// lines are a random line and those behind it.
func (w *Writer) lines(n int) (start, end int) {
	start, end = w.line()
	for range n - 1 {
		k := strings.IndexByte(w.Text[end:], '\n')
		if k < 0 {
			return start, len(w.Text)
		}
		end += k + 1
	}
	return start, end
}

func (w *Writer) atLine(text string) []Edit {
	at, _ := w.line()
	return []Edit{{at, at, text}}
}

// foreign are lines of one of the pool's programs.
func (w *Writer) foreign(n int) string {
	from := Writer{Text: w.pick(w.pool), rnd: w.rnd}
	start, end := from.lines(n)
	return from.Text[start:end]
}

func (w *Writer) deleteLines(n int) []Edit {
	start, end := w.lines(n)
	if start == end {
		return nil
	}
	return []Edit{{start, end, ""}}
}

func (w *Writer) duplicate() []Edit {
	start, end := w.lines(1 + w.rnd.IntN(3))
	return []Edit{{end, end, w.Text[start:end]}}
}

// move takes lines to another place, in one version.
func (w *Writer) move() []Edit {
	start, end := w.lines(1 + w.rnd.IntN(10))
	moved := w.Text[start:end]
	if moved == "" {
		return nil
	}
	rest := Writer{Text: w.Text[:start] + w.Text[end:], rnd: w.rnd}
	at, _ := rest.line()
	return []Edit{{start, end, ""}, {at, at, moved}}
}

func (w *Writer) comment() []Edit {
	start, end := w.line()
	switch w.rnd.IntN(3) {
	case 0:
		return []Edit{{start, start, "//"}}
	case 1:
		at := max(start, end-1)
		return []Edit{{at, at, w.pick([]string{" // note", "//", " // dmir: ignore[DM201] x", " // 😀"})}}
	}
	at := w.place()
	return []Edit{{at, at, "//"}}
}

func (w *Writer) uncomment() []Edit {
	start, end, ok := w.match(comments)
	if !ok {
		return nil
	}
	if w.rnd.IntN(2) == 0 {
		end = start + 2
	}
	return []Edit{{start, end, ""}}
}

func (w *Writer) lineEnd() []Edit {
	_, end := w.line()
	if end == 0 || w.Text[end-1] != '\n' {
		return nil
	}
	start := end - 1
	if start > 0 && w.Text[start-1] == '\r' {
		start--
	}
	return []Edit{{start, end, w.pick([]string{"\n", "\r\n", "\r\n", "\r", "", " "})}}
}

func (w *Writer) swapType() []Edit {
	start, end, ok := w.match(tensors)
	if !ok {
		return nil
	}
	return []Edit{{start, end, w.pick(types)}}
}

func (w *Writer) whole(text string) []Edit { return []Edit{{0, len(w.Text), text}} }

// halves replaces each half by itself.
func (w *Writer) halves() []Edit {
	at := w.place()
	return []Edit{{at, len(w.Text), w.Text[at:]}, {0, at, w.Text[:at]}}
}

// several combines edits of other kinds in one version.
func (w *Writer) several() []Edit {
	scratch := Writer{Text: w.Text, rnd: w.rnd, pool: w.pool}
	var all []Edit
	for range 2 + w.rnd.IntN(3) {
		s := scratch.any()
		if s.Whole {
			continue
		}
		var text string
		text, s.Edits = s.Apply(scratch.Text)
		scratch.Text = text
		all = append(all, s.Edits...)
	}
	return all
}

func pop(from *[]undo) []Edit {
	n := len(*from)
	if n == 0 {
		return nil
	}
	last := (*from)[n-1]
	*from = (*from)[:n-1]
	return last
}
