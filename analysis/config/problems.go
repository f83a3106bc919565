package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"dmir/analysis/machine"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

const unknownKey = "DM903"

// Codes are the diagnostics of dmir.toml, in the order of their numbers.
var Codes = diag.Register([]diag.Code{
	{Code: "DM901", Name: "config-unreadable", Doc: "A dmir.toml exists but cannot be read.", Help: "check the file's permissions"},
	{Code: "DM902", Name: "config-syntax", Doc: "The dmir.toml is not valid TOML, or a value has the wrong form. Nothing of the file is used.", Help: "correct the line"},
	{Code: unknownKey, Name: "config-unknown-key", Doc: "A dmir.toml has an unknown key. It has no effect, and is most likely misspelt.", Help: "the keys are target, [bind], [lint] with select and ignore, [plan] with devices, target and memory, and [machines.NAME]"},
	{Code: "DM904", Name: "config-value", Doc: "A value in dmir.toml is invalid: a negative size, a machine or a lint rule that does not exist, a machine without a bandwidth. That value is not used.", Help: "correct the value"},
})

func problem(code string, at source.Span, message string) diag.Diagnostic {
	return diag.New(code, diag.Error, at, message)
}

// UnknownRules reports which entries of [lint] name no rule; src is the file that c
// was read from, and known reports whether an entry names one.
func (c *Config) UnknownRules(src *source.File, known func(string) bool) []diag.Diagnostic {
	var out []diag.Diagnostic
	at := placesOf(src)
	for _, list := range []struct {
		key     string
		entries []string
	}{{"select", c.Lint.Select}, {"ignore", c.Lint.Ignore}} {
		for _, s := range list.entries {
			if !known(s) {
				d := problem("DM904", at.locate("lint", list.key), fmt.Sprintf("lint.%s: %q is not a rule", list.key, shown(s)))
				d.Help = "dmir explain lists the rules"
				out = append(out, d)
			}
		}
	}
	return few(out)
}

// decodeProblems turns the decoder's error into diagnostics at their places.
func decodeProblems(src *source.File, err error) []diag.Diagnostic {
	var unknown *toml.StrictMissingError
	var decode *toml.DecodeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		var out []diag.Diagnostic
		for i := range unknown.Errors {
			out = append(out, unknownAt(src, &unknown.Errors[i]))
		}
		return out
	case errors.As(err, &decode):
		row, col := decode.Position()
		return []diag.Diagnostic{problem("DM902", rest(src, row, col), plain(decode.Error()))}
	}
	return []diag.Diagnostic{problem("DM902", source.Span{}, plain(err.Error()))}
}

// machineProblems are the problems of the machine called name, each at the key that has it.
func machineProblems(name string, err error, find func(keys ...string) source.Span) []diag.Diagnostic {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var out []diag.Diagnostic
		for _, e := range all.Unwrap() {
			out = append(out, machineProblems(name, e, find)...)
		}
		return out
	}
	keys := []string{"machines", name}
	var at *machine.SpecError
	if errors.As(err, &at) && at.Key != "" {
		keys = append(keys, strings.Split(at.Key, ".")...)
	}
	return []diag.Diagnostic{problem("DM904", find(keys...), err.Error())}
}

func unknownAt(src *source.File, e *toml.DecodeError) diag.Diagnostic {
	key := e.Key()
	name := key[len(key)-1]
	row, col := e.Position()
	at := rest(src, row, col)
	if i := strings.Index(src.Slice(at), name); i >= 0 {
		at = source.Span{Start: at.Start + i, End: at.Start + i + len(name)}
	}
	d := problem(unknownKey, at, fmt.Sprintf("unknown key %q", shown(strings.Join(key, "."))))
	keys := keysAt(key[:len(key)-1])
	if keys != nil {
		d.Help = "the keys here are " + strings.Join(keys, ", ")
	}
	if near := diag.Suggest(name, keys); near != "" {
		d.Help = fmt.Sprintf("did you mean %q? %s", near, d.Help)
	}
	return d
}

// plain takes the library's prefix off a message.
func plain(msg string) string { return strings.TrimPrefix(msg, "toml: ") }

// rest is the text from a 1-based row and column to the end of the value's line.
func rest(src *source.File, row, col int) source.Span {
	start := src.LineStart(row-1) + max(col-1, 0)
	line := src.Line(row - 1)
	end := src.LineStart(row-1) + len(strings.TrimRight(line, " \t"))
	return source.Span{Start: min(start, src.Len()), End: max(end, min(start+1, src.Len()))}
}

// places finds the line on which a key is set: below its table's header, or dotted.
// It is made by one look at the text.
type places struct {
	src   *source.File
	lines map[string]int // the first by key, and by what the first dots of it end
	looks int            // lines, for tests
}

// maxDots bounds the parts of a key by which its line is found; those of
// dmir.toml have four, and names may hold dots.
const maxDots = 8

var bare = strings.NewReplacer(`"`, "", "'", "", " ", "")

func placesOf(src *source.File) *places { return &places{src: src} }

func (p *places) index() {
	p.lines = map[string]int{}
	table := ""
	for n := range p.src.Lines() {
		p.looks++
		line := strings.TrimSpace(p.src.Line(n))
		if strings.HasPrefix(line, "[") {
			table = bare.Replace(strings.Trim(line, "[] "))
		}
		name, _, assigned := strings.Cut(line, "=")
		full := bare.Replace(name)
		switch {
		case !assigned:
			full = table
		case table != "":
			full = table + "." + full
		}
		p.note(full, n)
		for i, dots := 0, 0; i < len(full) && dots < maxDots; i++ {
			if full[i] == '.' {
				dots++
				p.note(full[:i], n)
			}
		}
	}
}

func (p *places) note(key string, line int) {
	if len(key) > maxName {
		return
	}
	if _, known := p.lines[key]; !known {
		p.lines[key] = line
	}
}

// locate is the line on which a key is set, else that of the table around it; the whole first line stands for
// a miss.
func (p *places) locate(keys ...string) source.Span {
	if p.lines == nil {
		p.index()
	}
	n, ok := p.lines[strings.Join(keys, ".")]
	for i := len(keys) - 1; i > 0 && !ok; i-- {
		n, ok = p.lines[strings.Join(keys[:i], ".")]
	}
	if !ok {
		return source.Span{End: len(p.src.Line(0))}
	}
	text := p.src.Line(n)
	line := strings.TrimSpace(text)
	start := p.src.LineStart(n) + strings.Index(text, line)
	return source.Span{Start: start, End: start + len(line)}
}

// maxName bounds a key as it is looked up and shown, in bytes.
const maxName = 200

func shown(key string) string {
	if len(key) <= maxName {
		return key
	}
	return strings.ToValidUTF8(key[:maxName], "") + "…"
}

// maxProblems bounds the diagnostics of one file.
const maxProblems = 100

// few keeps the first of many problems.
func few(ds []diag.Diagnostic) []diag.Diagnostic {
	if n := len(ds) - maxProblems; n > 0 {
		last := ds[maxProblems-1]
		ds = append(ds[:maxProblems:maxProblems], problem("DM904", last.Span, fmt.Sprintf("and %d more problems after this line", n)))
		ds[maxProblems].Help = "correct those above first"
	}
	return ds
}
