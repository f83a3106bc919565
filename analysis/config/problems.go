package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Codes are the diagnostics of dmir.toml, in the order of their numbers.
var Codes = []diag.Code{
	{Code: "DM901", Name: "config-unreadable", Doc: "A dmir.toml is there but cannot be read.", Help: "check the file's permissions"},
	{Code: "DM902", Name: "config-syntax", Doc: "The dmir.toml is not valid TOML, or a value has the wrong form. Nothing of the file is used.", Help: "correct the line"},
	unknownKey,
	{Code: "DM904", Name: "config-value", Doc: "A value in dmir.toml says something that cannot be: a negative size, a machine or a lint rule that does not exist, a machine without a bandwidth. That value is not used.", Help: "correct the value"},
}

var unknownKey = diag.Code{Code: "DM903", Name: "config-unknown-key", Doc: "dmir.toml has a key that dmir does not know. It would have no effect, and is most likely misspelt.", Help: "the keys are target, [bind], [lint] with select and ignore, and [machines.NAME]"}

func problem(code string, at source.Span, message string) diag.Diagnostic {
	c := diag.Find(Codes, code)
	return diag.Diagnostic{Code: code, Name: c.Name, Help: c.Help, Severity: diag.Error, Span: at, Message: message}
}

// UnknownRules says which entries of [lint] name no rule; src is the file that c
// was read from, and known tells what does name one.
func (c *Config) UnknownRules(src *source.File, known func(string) bool) []diag.Diagnostic {
	var out []diag.Diagnostic
	for _, list := range []struct {
		key     string
		entries []string
	}{{"select", c.Lint.Select}, {"ignore", c.Lint.Ignore}} {
		for _, s := range list.entries {
			if !known(s) {
				d := problem("DM904", locate(src, []string{"lint", list.key}), fmt.Sprintf("lint.%s: %q names no rule", list.key, s))
				d.Help = "dmir explain lists the rules"
				out = append(out, d)
			}
		}
	}
	return out
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

func unknownAt(src *source.File, e *toml.DecodeError) diag.Diagnostic {
	key := e.Key()
	name := key[len(key)-1]
	row, col := e.Position()
	at := rest(src, row, col)
	if i := strings.Index(src.Slice(at), name); i >= 0 {
		at = source.Span{Start: at.Start + i, End: at.Start + i + len(name)}
	}
	d := problem(unknownKey.Code, at, fmt.Sprintf("unknown key %q", strings.Join(key, ".")))
	keys := keysAt(key[:len(key)-1])
	if keys != nil {
		d.Help = "known here are " + strings.Join(keys, ", ")
	}
	if near := diag.Suggest(name, keys); near != "" {
		d.Help = fmt.Sprintf("did you mean %q? %s", near, d.Help)
	}
	return d
}

// plain takes the library's prefix and Go's type names out of a message.
func plain(msg string) string {
	msg = strings.TrimPrefix(msg, "toml: ")
	if i := strings.Index(msg, " into struct field "); i >= 0 {
		if j := strings.LastIndex(msg, " of type "); j > i {
			msg = msg[:i] + " into a " + msg[j+len(" of type "):]
		}
	}
	return strings.NewReplacer("cannot decode TOML", "this is a TOML", " into a ", ", expected a ", " into int64", ", expected an integer").Replace(msg)
}

// rest is the text from a 1-based row and column to the end of the value's line.
func rest(src *source.File, row, col int) source.Span {
	start := src.LineStart(row-1) + max(col-1, 0)
	line := src.Line(row - 1)
	end := src.LineStart(row-1) + len(strings.TrimRight(line, " \t"))
	return source.Span{Start: min(start, src.Len()), End: max(end, min(start+1, src.Len()))}
}

// locate finds the line on which a key is set: below its table's header, or
// dotted. It is a search in the text; the whole first line stands for a miss.
func locate(src *source.File, keys []string) source.Span {
	table := ""
	for n := range src.Lines() {
		line := strings.TrimSpace(src.Line(n))
		if strings.HasPrefix(line, "[") {
			table = strings.Trim(line, "[] ")
		}
		name, _, assigned := strings.Cut(line, "=")
		full := strings.TrimSpace(name)
		switch {
		case !assigned:
			full = table
		case table != "":
			full = table + "." + full
		}
		full = strings.NewReplacer(`"`, "", "'", "", " ", "").Replace(full)
		if want := strings.Join(keys, "."); full == want || strings.HasPrefix(full, want+".") {
			start := src.LineStart(n) + strings.Index(src.Line(n), line)
			return source.Span{Start: start, End: start + len(line)}
		}
	}
	return source.Span{End: len(src.Line(0))}
}
