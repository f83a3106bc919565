package attribution

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"dmir/dialect/loc"
)

// By says what rows are of.
type By string

const (
	ByLine     By = "line"
	ByFunction By = "function"
	ByModule   By = "module" // and named scopes
	ByScope    By = "scope"  // as the exporter wrote them, with what transforms them: "jit(step)/transpose(jvp(Net))"
)

// Tree reports whether rows are of paths.
func (b By) Tree() bool { return b == ByModule || b == ByScope }

// Row is what is due to a line, a function or a module.
type Row struct {
	File     *File  // nil for what has no place
	Line     int    // of a line; of a function its first one, 0 where that is not known
	Function string // with the classes around it
	Path     string // of a module or a scope: "h.0.attn", "Net/Block_0"
	Class    string // of a module, "" where it is not known

	Amount
	Phases [phases]Amount
	Ops    int
	Steps  int   // kernels, and ops that run by themselves
	Shared bool  // ops or kernels are shared with other rows
	Held   int64 // bytes at the peak of memory
	Shares []Share
}

// key is what rows are told apart by.
type key struct {
	file *File
	line int
	name string
}

// Rows are f's shares by lines, functions or modules, the longest first; of equal ones that with more bytes, then in the
// order of files and lines. They add up to f.Total.
func (f *Function) Rows(by By, s *Sources) []*Row {
	rows := map[key]*Row{}
	row := func(l loc.Loc) *Row {
		k, r := s.row(by, l)
		if rows[k] == nil {
			rows[k] = r
		}
		return rows[k]
	}
	users := map[int]map[*Row]bool{} // of launches
	for _, x := range f.Shares {
		r := row(x.Loc)
		r.Amount = r.Plus(x.Amount)
		r.Phases[x.Phase] = r.Phases[x.Phase].Plus(x.Amount)
		r.Ops++
		r.Shares = append(r.Shares, x)
		if users[x.Launch] == nil {
			users[x.Launch] = map[*Row]bool{}
		}
		users[x.Launch][r] = true
	}
	for _, rs := range users {
		for r := range rs {
			r.Steps++
			r.Shared = r.Shared || len(rs) > 1
		}
	}
	for l, bytes := range f.Held {
		row(l).Held += bytes
	}
	maps.DeleteFunc(rows, func(_ key, r *Row) bool { return r.Amount == Amount{} && r.Held == 0 }) // constants, views
	out := slices.Collect(maps.Values(rows))
	slices.SortFunc(out, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(b.TimeNs, a.TimeNs), cmp.Compare(b.Moved(), a.Moved()), cmp.Compare(b.FLOP, a.FLOP), inOrder(a, b))
	})
	return out
}

// Add adds what is due to o.
func (r *Row) Add(o *Row) {
	r.Amount, r.Held = r.Plus(o.Amount), r.Held+o.Held
	r.Ops, r.Steps, r.Shared = r.Ops+o.Ops, r.Steps+o.Steps, r.Shared || o.Shared
	for p, a := range o.Phases {
		r.Phases[p] = r.Phases[p].Plus(a)
	}
}

// inOrder compares rows by where they are.
func inOrder(a, b *Row) int {
	return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Function, b.Function), cmp.Compare(a.Path, b.Path))
}

// Name is the path of the row's file, "" where it has none.
func (r *Row) Name() string {
	if r.File == nil {
		return ""
	}
	return r.File.Path
}

func (s *Sources) row(by By, l loc.Loc) (key, *Row) {
	p := s.Place(l)
	switch by {
	case ByModule:
		path, class := p.Module()
		return key{name: path}, &Row{Path: path, Class: class}
	case ByScope:
		path := p.Scope()
		return key{name: path}, &Row{Path: path}
	case ByFunction:
		r := &Row{File: p.File, Function: p.Function()}
		if p.File != nil {
			if in := p.File.Around(p.Frame.Line); in != nil {
				r.Line = in.Line
			}
		}
		return key{file: p.File, line: r.Line, name: r.Function}, r
	}
	r := &Row{File: p.File, Line: p.Frame.Line, Function: p.Function()}
	return key{file: p.File, line: r.Line}, r
}

// Module is the path of the module or the named scopes around a place, and the module's class where an exporter has stated it.
//
// torch.onnx writes ": GPT/h.0: Block/h.0.attn: Attention/linear: aten.linear.default", where paths are whole; JAX
// "jit(step)/jvp(Net)/Block_0/Dense_0/dot_general", where what transforms a scope is written around it, and the last part is the primitive.
func (p Place) Module() (path, class string) {
	var all []string
	for i, scopes := range p.Trace.Scopes {
		parts := splitScopes(scopes)
		if slices.ContainsFunc(parts, func(s string) bool { return strings.Contains(s, ": ") }) {
			for _, part := range parts[:len(parts)-1] {
				path, class, _ = strings.Cut(strings.TrimPrefix(part, ": "), ": ")
				if strings.HasPrefix(part, ": ") { // the model itself
					path, class = "", path
				}
			}
			all, class = nil, class[strings.LastIndexByte(class, '.')+1:]
			if path != "" {
				all = []string{path}
			}
			continue
		}
		if i == len(p.Trace.Scopes)-1 && len(parts) > 0 {
			parts = parts[:len(parts)-1]
		}
		for _, part := range parts {
			if part = scopeOf(part); part != "" {
				all = append(all, part)
			}
		}
	}
	return strings.Join(all, "/"), class
}

// Scope is the path of the scopes around a place as the exporter wrote them, without the op's own name: of JAX the name stack with
// its transformations; of torch.onnx the module's path, and the name of the node that an op was exported for.
func (p Place) Scope() string {
	var all []string
	for _, scopes := range p.Trace.Scopes {
		parts := splitScopes(scopes)
		last := parts[len(parts)-1]
		if node, _, module := strings.Cut(last, ": "); module {
			path, _ := p.Module()
			return strings.TrimPrefix(path+"/"+node, "/")
		}
		all = append(all, parts[:len(parts)-1]...)
	}
	return strings.Join(all, "/")
}

// ModuleOf is the path of the innermost module or named scope that holds all of what has a part of the cost of l, by its names;
// empty where there is none.
func ModuleOf(l loc.Loc) []string {
	costs := Costs(l)
	var common []string
	for i, c := range costs {
		path, _ := Place{Trace: loc.TraceOf(c)}.Module()
		names := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '.' })
		if i == 0 {
			common = names
			continue
		}
		n := 0
		for n < min(len(common), len(names)) && common[n] == names[n] {
			n++
		}
		common = common[:n]
	}
	return common
}

// splitScopes splits a path at the slashes outside of parentheses.
func splitScopes(path string) []string {
	var out []string
	depth, start := 0, 0
	for i := range len(path) {
		switch path[i] {
		case '(':
			depth++
		case ')':
			depth--
		case '/':
			if depth == 0 {
				out = append(out, path[start:i])
				start = i + 1
			}
		}
	}
	return append(out, path[start:])
}

// control are parts of a path that JAX's own functions add.
var control = map[string]bool{
	"while": true, "body": true, "cond": true, "scan": true, "checkpoint": true, loc.Recomputed: true, "closed_call": true,
	"core_call": true, "remat": true, "custom_jvp_call": true, "custom_vjp_call": true, "jit": true, "pjit": true,
}

// scopeOf is the named scope in a part of a path: "jvp(Net)" is Net, "transpose(jvp(Net))" too; "jit(step)" is none.
func scopeOf(part string) string {
	for {
		open := strings.IndexByte(part, '(')
		if open < 0 || !strings.HasSuffix(part, ")") {
			break
		}
		if name := part[:open]; name == "jit" || name == "pjit" || strings.HasPrefix(name, "branch_") {
			return ""
		}
		part = part[open+1 : len(part)-1]
	}
	if control[part] || strings.HasPrefix(part, "branch_") {
		return ""
	}
	return part
}
