package feature

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"dmir/analysis/units"
	"dmir/base/regular"
	"dmir/compile/tensor"
	"dmir/syntax/lex"
	"dmir/syntax/source"
)

// Link is the name of a file in a string or a comment.
type Link struct {
	Span source.Span
	Path string // absolute
	Line int    // 1-based line in that file, 0 where none is named
}

// extensions are those of the names that are taken for files: programs, arrays,
// the configuration.
var extensions = []string{".dmir", ".mlir", ".npy", ".npz", ".toml"}

// linePlace is a line, and a column, behind the name of a file.
var linePlace = regexp.MustCompile(`^:([0-9]{1,9})(:[0-9]{1,9})?`)

// Links are the files that the strings and comments of a text name, in order.
// Relative names count from the folder of the file at path; in a text that is
// no file they mean nothing.
func Links(src *source.File) []Link {
	text := src.Text()
	var out []Link
	var l reader
	for _, ext := range occurrences(text) {
		end := ext.End
		found := Link{}
		if m := linePlace.FindStringSubmatch(text[end:min(len(text), end+24)]); m != nil {
			found.Line, _ = strconv.Atoi(m[1])
			end += len(m[0])
		}
		if end < len(text) && (nameByte(text[end]) && text[end] != '.' || strings.IndexByte(`/\`, text[end]) >= 0) {
			continue // the name goes on
		}
		first, ok := l.inside(src, text, ext.Start)
		if !ok {
			continue
		}
		start := ext.Start
		for start > first && fileByte(text, start-1) {
			start--
		}
		found.Span = source.Span{Start: start, End: end}
		if found.Path, ok = resolve(src.Path, text[start:ext.End]); ok && start < ext.Start {
			out = append(out, found)
		}
	}
	return out
}

// occurrences are the places of the extensions in a text, in order.
func occurrences(text string) []source.Span {
	var out []source.Span
	for _, ext := range extensions {
		for at := 0; ; {
			i := strings.Index(text[at:], ext)
			if i < 0 {
				break
			}
			out = append(out, source.Span{Start: at + i, End: at + i + len(ext)})
			at += i + len(ext)
		}
	}
	slices.SortFunc(out, func(a, b source.Span) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// reader caches the tokens of the last line.
type reader struct {
	line source.Span
	toks []lex.Token
}

// inside is where the string or comment begins that holds off; ok is false
// where off lies in neither.
func (l *reader) inside(src *source.File, text string, off int) (start int, ok bool) {
	if l.toks == nil || off < l.line.Start || off >= l.line.End {
		n := src.Pos(off).Line
		at := src.LineStart(n)
		l.line = source.Span{Start: at, End: at + len(src.Line(n))}
		l.toks = lex.Tokens(text, l.line)
	}
	i := sort.Search(len(l.toks), func(i int) bool { return l.toks[i].End > off })
	if i < len(l.toks) && l.toks[i].Start <= off {
		return l.toks[i].Start + 1, text[l.toks[i].Start] == '"'
	}
	gap := source.Span{Start: l.line.Start, End: off}
	if i > 0 {
		gap.Start = l.toks[i-1].End
	}
	slashes := strings.Index(text[gap.Start:gap.End], "//")
	return gap.Start + slashes + 2, slashes >= 0
}

// fileByte reports whether the byte at i may be part of a file's name, as
// far as names are recognised: blanks, brackets and signs end them.
func fileByte(text string, i int) bool {
	c := text[i]
	return c >= 0x80 || nameByte(c) || strings.IndexByte(`/\~+@%`, c) >= 0 ||
		c == ':' && i+1 < len(text) && strings.IndexByte(`/\`, text[i+1]) >= 0
}

// resolve makes a name absolute. It refuses addresses, and the names of other
// machines, which to look at would be to call them.
func resolve(from, name string) (string, bool) {
	local := filepath.FromSlash(strings.ReplaceAll(name, `\`, "/"))
	switch {
	case strings.Contains(name, "://"), strings.HasPrefix(name, "//"), strings.HasPrefix(name, `\\`), strings.HasPrefix(name, "~"):
		return "", false
	case filepath.IsAbs(local):
		return filepath.Clean(local), true
	case !filepath.IsAbs(from) || strings.ContainsRune(name, ':'):
		return "", false
	}
	return filepath.Join(filepath.Dir(from), local), true
}

// Tooltip describes what the file of a link is: its size, the type of an array, or
// that there is none.
func (l Link) Tooltip() string {
	info, err := os.Stat(l.Path)
	switch {
	case err != nil:
		return "there is no such file: " + l.Path
	case info.IsDir():
		return "a folder: " + l.Path
	}
	size := units.Bytes(info.Size())
	if strings.HasSuffix(l.Path, ".npy") && info.Mode().IsRegular() {
		if what, err := describe(l.Path); err == nil {
			return fmt.Sprintf("%s, %s", what, size)
		}
		return "not an array in NumPy's format, " + size
	}
	if l.Line > 0 {
		return fmt.Sprintf("line %d of %s, %s", l.Line, filepath.Base(l.Path), size)
	}
	return fmt.Sprintf("%s, %s", filepath.Base(l.Path), size)
}

func describe(path string) (string, error) {
	f, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	return tensor.DescribeNPY(f)
}
