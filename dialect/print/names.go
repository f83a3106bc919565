package print

import (
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/origin"
)

// names gives every value of one isolated op a name: its own where that is
// legal and free, else one like it, else a number. Names defined in a region
// are free again behind it.
type names struct {
	outer  *names
	text   map[*ir.Value]string
	used   map[string]bool
	log    []string       // names to free at the end of regions, in order
	held   map[string]int // names of ops whose regions are being printed: free inside, taken behind
	next   int            // the next number to try
	suffix map[string]int // the last one tried for a name that was taken
	labels map[*ir.Block]string
}

func newNames(outer *names) *names {
	return &names{outer: outer, text: map[*ir.Value]string{}, used: map[string]bool{}, held: map[string]int{}, suffix: map[string]int{}, labels: map[*ir.Block]string{}}
}

func (n *names) mark() int { return len(n.log) }

func (n *names) release(mark int) {
	for _, name := range n.log[mark:] {
		delete(n.used, name)
	}
	n.log = n.log[:mark]
}

// group is how many of the values at the front share one name as "%r:n".
func group(vs []*ir.Value) int {
	base, ok := strings.CutSuffix(vs[0].Name, "#0")
	if !ok {
		return 1
	}
	n := 1
	for n < len(vs) && vs[n].Name == base+"#"+strconv.Itoa(n) {
		n++
	}
	return n
}

// define names values that share one name and returns that name.
func (n *names) define(vs []*ir.Value) string {
	name := n.hold(vs)
	if !n.used[name] {
		n.used[name] = true
		n.log = append(n.log, name)
	}
	return name
}

// hold names values as define does, but leaves the name free until define is
// called: an op's results are defined behind its regions, which may use the
// same names for themselves.
func (n *names) hold(vs []*ir.Value) string {
	if name, ok := n.text[vs[0]]; ok {
		name, _, _ = strings.Cut(name, "#")
		return name
	}
	return n.assign(vs, false)
}

func (n *names) assign(vs []*ir.Value, early bool) string {
	base := vs[0].Name
	if i := strings.IndexByte(base, '#'); i >= 0 {
		base = base[:i]
	}
	name := n.free(base, early)
	for i, v := range vs {
		n.text[v] = name
		if len(vs) > 1 {
			n.text[v] = name + "#" + strconv.Itoa(i)
		}
	}
	return name
}

// use is the text of an operand. A value that is defined further down gets its
// name now and keeps it to itself.
func (n *names) use(v *ir.Value) string {
	for s := n; s != nil; s = s.outer {
		if name, ok := s.text[v]; ok {
			return name
		}
	}
	vs := []*ir.Value{v}
	if v.Op != nil {
		for i := 0; i < len(v.Op.Results); {
			k := group(v.Op.Results[i:])
			if v.Index < i+k {
				vs = v.Op.Results[i : i+k]
				break
			}
			i += k
		}
	}
	n.used[n.assign(vs, true)] = true
	return n.text[v]
}

// free is base, or a name like it that is not taken; a name that is given
// early, before its definition, must not be one that is held either.
func (n *names) free(base string, early bool) string {
	taken := func(name string) bool { return n.used[name] || early && n.held[name] > 0 }
	if legal(base) {
		if !taken(base) {
			return base
		}
		if base[1] > '9' || base[1] < '0' {
			for {
				n.suffix[base]++
				if name := base + "_" + strconv.Itoa(n.suffix[base]); !taken(name) {
					return name
				}
			}
		}
	}
	for {
		name := "%" + strconv.Itoa(n.next)
		n.next++
		if !taken(name) {
			return name
		}
	}
}

// legal reports whether name is an SSA name: "%" and digits, or a word.
func legal(name string) bool {
	if len(name) < 2 || name[0] != '%' {
		return false
	}
	number := name[1] >= '0' && name[1] <= '9'
	for i := 1; i < len(name); i++ {
		c := name[i]
		digit := c >= '0' && c <= '9'
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c == '.' || c == '-'
		if !digit && (number || !letter) {
			return false
		}
	}
	return true
}

// block is the label of b: its own, or one that is free in its region.
func (n *names) block(b *ir.Block) string {
	if l, ok := n.labels[b]; ok {
		return l
	}
	taken := map[string]bool{}
	for _, o := range b.Region.Blocks {
		if o.Label != "" && !taken[o.Label] {
			n.labels[o] = o.Label
			taken[o.Label] = true
		}
	}
	for _, b := range b.Region.Blocks { // a label in the kept text of an op must not resolve to a block that it did not name before
		for _, o := range b.Ops {
			if o.Verbatim {
				for _, s := range origin.Tree(o).Succs {
					taken[s.Name] = true
				}
			}
		}
	}
	next := 0
	for _, o := range b.Region.Blocks {
		for n.labels[o] == "" {
			if l := "^bb" + strconv.Itoa(next); !taken[l] {
				n.labels[o] = l
				taken[l] = true
			}
			next++
		}
	}
	return n.labels[b]
}
