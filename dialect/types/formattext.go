package types

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/dim"
	"dmir/syntax/diag"
)

// FormatName is a name of formats, as csr in #dm.csr, with an example of its arguments.
type FormatName struct {
	Name, Args, Doc string
	Rank            int  // of the tensors that it is for, 0 for any
	Blocks          bool // the first argument is the size of blocks
}

// Formats are the names of formats.
var Formats = []FormatName{
	{Name: "csr", Args: "nnz = e", Doc: "compressed sparse rows", Rank: 2},
	{Name: "csc", Args: "nnz = e", Doc: "compressed sparse columns", Rank: 2},
	{Name: "coo", Args: "nnz = e", Doc: "the coordinates of each element, sorted"},
	{Name: "dcsr", Args: "nnz = [r, e]", Doc: "compressed sparse rows, of which only those with elements are stored", Rank: 2},
	{Name: "dcsc", Args: "nnz = [c, e]", Doc: "compressed sparse columns, of which only those with elements are stored", Rank: 2},
	{Name: "csf", Args: "nnz = e", Doc: "compressed sparse fibers, of any number of dimensions"},
	{Name: "bsr", Args: "16x16, nnz = b", Doc: "compressed sparse rows of dense blocks; nnz counts blocks", Rank: 2, Blocks: true},
	{Name: "sparse_vector", Args: "nnz = e", Doc: "a vector's elements with their coordinates", Rank: 1},
	{Name: "nm", Args: "2:4", Doc: "of each M neighbours in a row N are stored", Rank: 2, Blocks: true},
	{Name: "sparse", Args: "map = (d0, d1) -> (d0 : dense, d1 : compressed), nnz = e", Doc: "any levels, as MLIR's sparse_tensor writes them"},
}

// LevelKinds are the kinds of levels, with what they store.
var LevelKinds = []struct {
	Kind LevelKind
	Doc  string
}{
	{DenseLevel, "every coordinate has an entry: nothing is stored"},
	{CompressedLevel, "positions of each parent, and the coordinates of its entries"},
	{SingletonLevel, "one coordinate for each parent"},
	{LooseCompressedLevel, "two positions for each parent, and the coordinates between them"},
	{StructuredLevel, "of each m neighbours n: structured[n, m]"},
}

// FormatHelp says how a format is written.
const FormatHelp = "write #dm.csr<nnz = e>, #dm.bsr<16x16>, or #dm.sparse<map = (d0, d1) -> (d0 : dense, d1 : compressed), nnz = e, posWidth = 32, crdWidth = 32>"

func badFormat(format string, args ...any) *Error {
	return &Error{Code: "DM147", Msg: fmt.Sprintf(format, args...), Help: FormatHelp}
}

// formatName is the name of the format in the attribute called name, "dm.csr".
func formatName(name string) (string, bool) {
	short, ok := strings.CutPrefix(name, "dm.")
	return short, ok && short != "at"
}

// sparseEncoding is the name of the attribute by which MLIR states a format.
const sparseEncoding = "sparse_tensor.encoding"

// formatText is a parsed format.
type formatText struct {
	format Format
	dims   []dim.Dim
	rank   int
}

// errBeyond is of what MLIR's attribute can say and Format does not hold: slices, symbols,
// batches, the value of what is not stored, levels that walk other expressions.
var errBeyond = errors.New("not held")

// parseFormat reads the attribute #name<body> of a tensor of that shape. Of MLIR's own
// attribute understood is false where it says what Format does not hold.
func parseFormat(name, body string, shape []dim.Dim) (f *Format, dims []dim.Dim, understood bool, err error) {
	p := &formatText{rank: len(shape), format: Format{PosWidth: 32, CrdWidth: 32}}
	foreign := name == sparseEncoding
	body = withoutComments(body)
	if foreign {
		p.format.PosWidth, p.format.CrdWidth = 64, 64
		inner, ok := strings.CutPrefix(strings.TrimSpace(body), "{")
		inner, closed := strings.CutSuffix(inner, "}")
		if !ok || !closed {
			return nil, nil, false, nil
		}
		body = inner
	} else {
		name, _ = formatName(name)
		if !slices.ContainsFunc(Formats, func(f FormatName) bool { return f.Name == name }) {
			names := make([]string, 0, len(Formats)+1)
			for _, f := range Formats {
				names = append(names, f.Name)
			}
			help := "the formats are " + strings.Join(names, ", ")
			if s := diag.Suggest(name, append(names, "at")); s != "" {
				help = "did you mean #dm." + s + "? " + help
			}
			return nil, nil, true, &Error{Code: "DM147", Msg: fmt.Sprintf("#dm.%s is neither a placement nor a format", name), Help: help}
		}
	}
	levels, nnz, err := p.parts(name, body, foreign)
	switch {
	case err == nil && levels == "":
		err = badFormat("the format says no map of levels")
	case err == nil:
		err = p.levels(levels)
	}
	if err == nil {
		if why := p.format.check(shape); why != "" {
			if err = badFormat("%s", why); foreign {
				err = errBeyond
			}
		}
	}
	if err == nil {
		err = p.stored(nnz)
	}
	switch {
	case foreign && err == errBeyond:
		return nil, nil, false, nil
	case err == errBeyond:
		err = badFormat("the map %s is one of MLIR's, which has no code here", levels)
	}
	if err != nil {
		return nil, nil, true, err
	}
	return &p.format, p.dims, true, nil
}

// withoutComments is text without what stands behind "//" in a line.
func withoutComments(text string) string {
	if !strings.Contains(text, "//") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "//")
		b.WriteString(code + "\n")
	}
	return b.String()
}

// parts reads the arguments of a format: its levels, and how many entries it has room for.
func (p *formatText) parts(name, body string, foreign bool) (levels string, nnz []dim.Dim, err error) {
	levels, err = p.named(name, &body)
	if err != nil {
		return "", nil, err
	}
	seen := map[string]bool{}
	if strings.TrimSpace(body) == "" {
		return levels, nil, nil
	}
	beyond := false
	for _, part := range splitTop(body) {
		key, value, ok := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok {
			return "", nil, badFormat("unexpected %q in a format", strings.TrimSpace(part))
		}
		if seen[key] {
			return "", nil, badFormat("%s is written twice", key)
		}
		seen[key] = true
		switch {
		case key == "map" && levels == "":
			levels = value
		case key == "posWidth" || key == "crdWidth":
			n, err := strconv.Atoi(value)
			if err == nil && foreign && n == 0 {
				n = 64
			}
			if !slices.Contains([]int{8, 16, 32, 64}, n) || err != nil {
				return "", nil, badFormat("%s is 8, 16, 32 or 64, not %s", key, value)
			}
			if key == "posWidth" {
				p.format.PosWidth = n
			} else {
				p.format.CrdWidth = n
			}
		case key == "nnz" && !foreign:
			if nnz, err = p.sizes(value); err != nil {
				return "", nil, err
			}
		case key == "pieces" && !foreign:
			if p.format.Pieces, err = parsePieces(value); err != nil {
				return "", nil, err
			}
		case key == "by" && !foreign:
			if p.format.ByEntries = value == "entries"; !p.format.ByEntries && value != "rows" {
				return "", nil, badFormat("pieces are by rows or by entries, not by %s", value)
			}
		case key == "dims" && !foreign:
			inner, ok := strings.CutPrefix(value, "[")
			inner, closed := strings.CutSuffix(inner, "]")
			if !ok || !closed {
				return "", nil, badFormat("dims needs a list in brackets, not %q", value)
			}
			if p.dims, err = parseDims(inner); err != nil {
				return "", nil, err
			}
		case foreign && (key == "explicitVal" || key == "implicitVal"):
			beyond = true
		default:
			return "", nil, badFormat("unexpected %q in a format", strings.TrimSpace(part))
		}
	}
	if beyond {
		return levels, nil, errBeyond
	}
	return levels, nnz, nil
}

// named is the map of the format called name, "" where its text states it; the first
// argument of those that take one is cut from body.
func (p *formatText) named(name string, body *string) (string, error) {
	pair := func(sep string) (a, b int64, err error) {
		first, rest, _ := strings.Cut(*body, ",")
		x, y, ok := strings.Cut(strings.TrimSpace(first), sep)
		a, errA := strconv.ParseInt(x, 10, 32)
		b, errB := strconv.ParseInt(y, 10, 32)
		if !ok || errA != nil || errB != nil || a <= 0 || b <= 0 {
			return 0, 0, badFormat("#dm.%s begins with two numbers such as 2%s4, not %q", name, sep, strings.TrimSpace(first))
		}
		*body = rest
		return a, b, nil
	}
	of := func(rank int, levels string) (string, error) {
		if rank != p.rank {
			return "", badFormat("#dm.%s is for tensors of %d dimensions, not %d", name, rank, p.rank)
		}
		dims := make([]string, rank)
		for d := range dims {
			dims[d] = "d" + strconv.Itoa(d)
		}
		return "(" + strings.Join(dims, ", ") + ") -> (" + levels + ")", nil
	}
	switch name {
	case "coo":
		return of(max(p.rank, 1), coordinates(max(p.rank, 1)))
	case "csf":
		return of(max(p.rank, 1), fibers(max(p.rank, 1)))
	case "bsr":
		a, b, err := pair("x")
		if err != nil {
			return "", err
		}
		return of(2, blocked(a, b))
	case "nm":
		n, m, err := pair(":")
		if err != nil {
			return "", err
		}
		return of(2, structured(n, m))
	}
	for _, s := range shortNames {
		if s.name == name {
			return of(s.rank, s.levels)
		}
	}
	return "", nil
}

// listed is the parts of a list in brackets, or text alone; closed is false of a list without an end.
func listed(text string) (list []string, closed bool) {
	inner, ok := strings.CutPrefix(text, "[")
	if !ok {
		return []string{text}, true
	}
	inner, closed = strings.CutSuffix(inner, "]")
	return splitTop(inner), closed
}

// parsePieces reads 4, or [2, 2].
func parsePieces(text string) (p Pieces, err error) {
	list, closed := listed(text)
	for i, into := range []*int64{&p.Outer, &p.Inner} {
		if i < len(list) {
			*into, err = strconv.ParseInt(strings.TrimSpace(list[i]), 10, 32)
		}
		if err != nil || !closed || len(list) > 2 || i < len(list) && *into <= 0 {
			return Pieces{}, badFormat("pieces is a positive number, or two in brackets of a matrix cut along both dimensions, not %s", text)
		}
	}
	return p, nil
}

// sizes reads one size, or a list of them.
func (p *formatText) sizes(text string) ([]dim.Dim, error) {
	list, closed := listed(text)
	if !closed {
		return nil, badFormat("nnz needs a size or a list of sizes, not %q", text)
	}
	out := make([]dim.Dim, len(list))
	for i, s := range list {
		if s = strings.TrimSpace(s); s == "?" {
			out[i] = dim.Unnamed("nnz" + strconv.Itoa(i))
			continue
		}
		d, err := dim.Parse(s)
		if n, ok := d.Int(); err != nil || ok && n < 0 {
			bad := badFormat("nnz = %s is no number from 0 on, and no symbol", text)
			bad.Help = "write nnz = 4096, or a symbol that --bind, dm.bind or an input gives: nnz = e; in place of a formula a symbol of its own"
			return nil, bad
		}
		out[i] = d
	}
	return out, nil
}

// stored gives each compressed level the entries that it has room for. One size is that
// of all: a level has no more entries than the one below.
func (p *formatText) stored(nnz []dim.Dim) error {
	n := p.format.CompressedLevels()
	switch {
	case nnz == nil:
		for i := range n {
			nnz = append(nnz, dim.Unnamed("nnz"+strconv.Itoa(i)))
		}
	case n == 0:
		return badFormat("nnz is of compressed levels, but the format has none")
	case len(nnz) == 1:
		nnz = slices.Repeat(nnz, n)
	case len(nnz) != n:
		return badFormat("nnz has %d sizes for %d compressed levels", len(nnz), n)
	}
	p.format.Stored = nnz
	return nil
}

// levels reads (i, j) -> (i : dense, j : compressed), where MLIR's form may also name the
// levels: {l, m} (i = l, j = m) -> (l = i : dense, m = j : compressed).
func (p *formatText) levels(text string) error {
	from, to, ok := strings.Cut(text, "->")
	from = strings.TrimSpace(from)
	if strings.HasPrefix(from, "[") {
		return errBeyond
	}
	_, rest, named := strings.Cut(from, "}")
	if named = named && strings.HasPrefix(from, "{"); named {
		from = rest
	}
	list := func(s string) ([]string, bool) {
		inner, ok := strings.CutPrefix(strings.TrimSpace(s), "(")
		inner, closed := strings.CutSuffix(inner, ")")
		if strings.TrimSpace(inner) == "" {
			return nil, ok && closed
		}
		return splitTop(inner), ok && closed
	}
	names, ok2 := list(from)
	levels, ok3 := list(to)
	if !ok || !ok2 || !ok3 {
		return badFormat("a map is (d0, d1) -> (d0 : dense, d1 : compressed), not %q", text)
	}
	if len(names) != p.rank {
		return badFormat("the map has %d dimensions, the tensor %d", len(names), p.rank)
	}
	dims := map[string]int{}
	for i, n := range names {
		if strings.Contains(n, "#sparse_tensor<slice(") {
			return errBeyond
		}
		if named {
			n, _, _ = strings.Cut(n, "=")
		}
		n = strings.TrimSpace(n)
		if _, twice := dims[n]; twice || !isBareID(n) {
			return badFormat("%q is not the name of a dimension, or that of two", n)
		}
		dims[n] = i
	}
	if len(levels) > 2*maxRank {
		return badFormat("the map has %d levels", len(levels))
	}
	for _, l := range levels {
		if _, walks, ok := strings.Cut(l, "="); named && ok {
			l = walks
		}
		level, err := parseLevel(l, dims)
		if err != nil {
			return err
		}
		p.format.Levels = append(p.format.Levels, level)
	}
	return nil
}

func parseLevel(text string, dims map[string]int) (l Level, err error) {
	expr, kind, ok := strings.Cut(text, ":")
	words := strings.Fields(expr)
	bad := badFormat("a level is d0 : compressed, d0 floordiv 4 : dense or d0 mod 4 : dense, not %q", strings.TrimSpace(text))
	switch {
	case ok && strings.ContainsAny(expr, "+-*(") || strings.TrimSpace(kind) == "batch":
		return l, errBeyond
	case !ok || len(words) != 1 && len(words) != 3:
		return l, bad
	}
	if l.Dim, ok = dims[words[0]]; !ok {
		return l, badFormat("the map has no dimension %s", words[0])
	}
	if len(words) == 3 {
		n, err := strconv.ParseInt(words[2], 10, 32)
		switch {
		case err != nil || n <= 0:
			return l, bad
		case words[1] == "floordiv":
			l.Div = n
		case words[1] == "mod":
			l.Mod = n
		default:
			return l, bad
		}
	}
	kind = strings.TrimSpace(kind)
	if i := strings.IndexByte(kind, '('); i >= 0 {
		inner, closed := strings.CutSuffix(kind[i+1:], ")")
		if !closed {
			return l, bad
		}
		for _, s := range strings.Split(inner, ",") {
			s = strings.TrimSpace(s)
			at := slices.IndexFunc(l.props(), func(p levelProp) bool { return p.name == s })
			if at < 0 {
				return l, badFormat("%q is not a property of a level: nonunique, nonordered, soa", s)
			}
			*l.props()[at].on = true
		}
		kind = strings.TrimSpace(kind[:i])
	}
	if i := strings.IndexByte(kind, '['); i >= 0 {
		inner, closed := strings.CutSuffix(kind[i+1:], "]")
		a, b, two := strings.Cut(inner, ",")
		n, errN := strconv.ParseInt(strings.TrimSpace(a), 10, 32)
		m, errM := strconv.ParseInt(strings.TrimSpace(b), 10, 32)
		if !closed || !two || errN != nil || errM != nil || strings.TrimSpace(kind[:i]) != string(StructuredLevel) {
			return l, bad
		}
		l.Kind, l.N, l.M = StructuredLevel, n, m
		return l, nil
	}
	l.Kind = LevelKind(kind)
	for _, k := range LevelKinds {
		if k.Kind == l.Kind && k.Kind != StructuredLevel {
			return l, nil
		}
	}
	return l, badFormat("%q is not a kind of level: dense, compressed, loose_compressed, singleton, structured[n, m]", kind)
}
