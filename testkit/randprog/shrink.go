package randprog

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/source"
)

// Shrink reduces a failing program as long as it fails: it removes results, replaces
// ops by an argument or by an operand, removes kernels around ops, and makes
// dimensions smaller. fails gets valid programs and returns the index of one that
// fails, or -1.
func Shrink(text string, fails func(candidates []string) int) string {
	const together = 48
	for {
		var tried []string
		smaller := ""
		try := func() bool {
			if len(tried) == 0 {
				return false
			}
			if i := fails(tried); i >= 0 {
				smaller = tried[i]
			}
			tried = nil
			return smaller != ""
		}
		seen := map[string]bool{text: true}
		for c := range reductions(text) {
			if seen[c] || !valid(c) {
				continue
			}
			seen[c] = true
			if tried = append(tried, c); len(tried) == together && try() {
				break
			}
		}
		if smaller == "" && !try() {
			return text
		}
		text = smaller
	}
}

func valid(text string) bool {
	p := program.Load(source.New("s.dmir", text), program.Options{})
	return len(p.Modules) > 0 && !p.HasErrors()
}

// statement is an op of the function, with its regions.
type statement struct {
	text    string
	results []string
	types   []string
}

// form is the first function of a program in parts.
type form struct {
	head  string // "func.func @f"
	args  []string
	body  []statement
	ret   []string
	types []string
	tail  string // other functions
}

// The names in a text, and what a value's name is.
var (
	valueName = regexp.MustCompile(`%[A-Za-z0-9_]+(?:#\d+)?`)
	dimension = regexp.MustCompile(`(\d+)x`)
)

// read parses a program; ok is false if it has a form that the reductions do not
// support.
func read(text string) (f form, ok bool) {
	p := program.Load(source.New("s.dmir", text), program.Options{})
	if len(p.Modules) == 0 || len(p.Modules[0].Funcs) == 0 {
		return f, false
	}
	fn := p.Modules[0].Funcs[0]
	if fn.Body == nil || fn.Body.Terminator() == nil {
		return f, false
	}
	lines := strings.SplitAfter(text, "\n")
	start := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, op.Func) })
	if start < 0 {
		return f, false
	}
	f.head = lines[start][:strings.Index(lines[start], "(")]
	for _, a := range fn.Args {
		f.args = append(f.args, a.Name+": "+a.Type.String())
	}
	i := start + 1
	for _, o := range fn.Body.Ops {
		var t strings.Builder
		for depth := 0; i < len(lines); {
			l := lines[i]
			i++
			if strings.HasPrefix(strings.TrimSpace(l), "//") {
				continue
			}
			t.WriteString(l)
			if depth += braces(l); depth == 0 {
				break
			}
		}
		if o == fn.Body.Terminator() {
			break
		}
		s := statement{text: t.String()}
		for _, r := range o.Results {
			s.results, s.types = append(s.results, r.Name), append(s.types, r.Type.String())
		}
		f.body = append(f.body, s)
	}
	for _, v := range fn.Body.Terminator().Operands {
		f.ret, f.types = append(f.ret, v.Name), append(f.types, typeOf(v))
	}
	if i < len(lines) && strings.HasPrefix(lines[i], "}") {
		f.tail = strings.Join(lines[i+1:], "")
		return f, true
	}
	return f, false
}

func typeOf(v *ir.Value) string { return v.Type.String() }

// braces is how much deeper a line's end lies than its start.
func braces(line string) int {
	line, _, _ = strings.Cut(line, "//")
	return strings.Count(line, "{") - strings.Count(line, "}")
}

// text is the program again, without ops and arguments that nothing uses.
func (f form) text() string {
	used := map[string]bool{}
	for _, r := range f.ret {
		used[base(r)] = true
	}
	var body []string
	for _, s := range slices.Backward(f.body) {
		if !slices.ContainsFunc(s.results, func(r string) bool { return used[base(r)] }) {
			continue
		}
		for _, n := range valueName.FindAllString(s.text, -1) {
			used[base(n)] = true
		}
		body = append(body, s.text)
	}
	slices.Reverse(body)
	args := slices.DeleteFunc(slices.Clone(f.args), func(a string) bool { return !used[a[:strings.Index(a, ":")]] })
	called := ""
	if strings.Contains(strings.Join(body, ""), "@") {
		called = f.tail
	}
	return fmt.Sprintf("%s(%s) -> (%s) {\n%s  return %s : %s\n}\n%s", f.head, strings.Join(args, ", "), strings.Join(f.types, ", "),
		strings.Join(body, ""), strings.Join(f.ret, ", "), strings.Join(f.types, ", "), called)
}

func base(name string) string {
	name, _, _ = strings.Cut(name, "#")
	return name
}

// reductions returns programs that are smaller than text, the much smaller ones
// first. Not all are valid.
func reductions(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		f, ok := read(text)
		if !ok {
			return
		}
		for i := range f.ret { // one result
			if len(f.ret) > 1 {
				g := f
				g.ret, g.types = f.ret[i:i+1], f.types[i:i+1]
				if !yield(g.text()) {
					return
				}
			}
		}
		for _, s := range f.body { // an intermediate value as the result
			for k, r := range s.results {
				g := f
				g.ret, g.types = []string{r}, s.types[k:k+1]
				if t := g.text(); len(t) < len(text) && !yield(t) {
					return
				}
			}
		}
		for i := range f.ret { // all results but one
			if len(f.ret) > 2 {
				g := f
				g.ret, g.types = slices.Delete(slices.Clone(f.ret), i, i+1), slices.Delete(slices.Clone(f.types), i, i+1)
				if !yield(g.text()) {
					return
				}
			}
		}
		for i, s := range slices.Backward(f.body) { // the result of an op becomes an argument
			if strings.Contains(strings.Join(s.results, ""), "#") || strings.Contains(s.text, op.Constant) {
				continue
			}
			g := f
			g.body = slices.Delete(slices.Clone(f.body), i, i+1)
			g.args = slices.Clone(f.args)
			for k, r := range s.results {
				g.args = append(g.args, r+": "+s.types[k])
			}
			if !yield(g.text()) {
				return
			}
		}
		for i, s := range f.body { // replaced by an operand
			if len(s.results) != 1 {
				continue
			}
			first, _, _ := strings.Cut(s.text, "\n")
			for _, n := range valueName.FindAllString(first, -1)[1:] {
				if !yield(f.instead(i, s.results[0], n)) {
					return
				}
			}
		}
		for i, s := range f.body {
			if t, ok := inlined(s); ok {
				g := f
				g.body = slices.Clone(f.body)
				g.body[i].text = t
				if !yield(g.joined()) {
					return
				}
			}
		}
		for i, s := range f.body {
			next := func(t string) bool {
				g := f
				g.body = slices.Clone(f.body)
				g.body[i].text = t
				return yield(g.text())
			}
			if !within(s, next) {
				return
			}
		}
		for _, d := range sizes(text) {
			for _, n := range []int{1, 2, 3, d / 2, d - 1} {
				if n > 0 && n < d && !yield(resized(text, d, n)) {
					return
				}
			}
		}
	}
}

// joined is the text with all statements, used or not.
func (f form) joined() string {
	var body strings.Builder
	for _, s := range f.body {
		body.WriteString(s.text)
	}
	return fmt.Sprintf("%s(%s) -> (%s) {\n%s  return %s : %s\n}\n%s", f.head, strings.Join(f.args, ", "), strings.Join(f.types, ", "),
		body.String(), strings.Join(f.ret, ", "), strings.Join(f.types, ", "), f.tail)
}

// instead is f without statement i, whose result's users take name.
func (f form) instead(i int, result, name string) string {
	f.body = slices.Delete(slices.Clone(f.body), i, i+1)
	for k := range f.body {
		f.body[k].text = whole(result).ReplaceAllLiteralString(f.body[k].text, name)
	}
	f.ret = slices.Clone(f.ret)
	for k, r := range f.ret {
		if r == result {
			f.ret[k] = name
		}
	}
	return f.text()
}

// inlined is the text of the first region of a kernel or a branch, with the names of
// the op's results.
func inlined(s statement) (string, bool) {
	if !strings.Contains(s.text, "= dm.kernel ") && !strings.Contains(s.text, "= dm.if ") {
		return "", false
	}
	head, inside, _ := strings.Cut(s.text, "\n")
	inner, after, ok := strings.Cut(inside, "dm.yield ")
	if !ok || !strings.HasSuffix(head, "{") {
		return "", false
	}
	names, _, _ := strings.Cut(after, " :")
	for k, n := range strings.Split(names, ", ") {
		if k < len(s.results) {
			inner = whole(n).ReplaceAllLiteralString(inner, s.results[k])
		}
	}
	return strings.TrimRight(inner, " "), true
}

func whole(name string) *regexp.Regexp { return regexp.MustCompile(regexp.QuoteMeta(name) + `\b`) }

// within returns s without one of the ops in its regions, whose result's users
// take one of its operands; not all are valid.
func within(s statement, yield func(string) bool) bool {
	lines := strings.SplitAfter(s.text, "\n")
	for i, l := range lines {
		if i == 0 || !strings.Contains(l, " = dm.") || strings.HasSuffix(l, "{\n") {
			continue
		}
		names := valueName.FindAllString(l, -1)
		before, after := strings.Join(lines[:i], ""), strings.Join(lines[i+1:], "")
		if !whole(names[0]).MatchString(after) {
			names = names[:min(len(names), 2)]
		}
		for _, n := range names[1:] {
			if !yield(before + whole(names[0]).ReplaceAllLiteralString(after, n)) {
				return false
			}
		}
	}
	return true
}

// sizes are those of the dimensions in a text, large ones first.
func sizes(text string) (out []int) {
	for _, m := range dimension.FindAllStringSubmatch(text, -1) {
		if d, err := strconv.Atoi(m[1]); err == nil && d > 1 && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out
}

// resized is the text with n for each dimension of d, also in lists of sizes.
func resized(text string, d, n int) string {
	text = regexp.MustCompile(fmt.Sprintf(`([<x])%dx`, d)).ReplaceAllString(text, fmt.Sprintf("${1}%dx", n))
	text = regexp.MustCompile(fmt.Sprintf(`x%dx`, d)).ReplaceAllString(text, fmt.Sprintf("x%dx", n))
	return regexp.MustCompile(fmt.Sprintf(`((?:limit_indices|slice_sizes) = \[[^\]]*)\b%d\b`, d)).ReplaceAllString(text, fmt.Sprintf("${1}%d", n))
}
