package attribution

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"dmir/analysis/units"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"time": func(ns int64) string {
		if ns == 0 {
			return ""
		}
		return units.Time(float64(ns))
	},
	"bytes": func(n int64) string {
		if n == 0 {
			return ""
		}
		return units.Bytes(n)
	},
	"flop": func(n int64) string {
		if n == 0 {
			return ""
		}
		return units.FLOP(n)
	},
	"percent": func(part, whole int64) string { return units.Percent(float64(part), float64(whole)) },
	"heat": func(part, whole int64) template.CSS {
		if whole <= 0 {
			return "0"
		}
		return template.CSS(fmt.Sprintf("%.4f", float64(part)/float64(whole)))
	},
	"add":   func(a, b int64) int64 { return a + b },
	"level": func(n *Node, total Amount, depth int) pageNode { return pageNode{n, total, depth, depth + 1} },
}).Parse(pageText))

// pageNode is a module at a depth of the tree.
type pageNode struct {
	Node         *Node
	Total        Amount
	Depth, Below int
}

// pageData is what the page shows.
type pageData struct {
	File, Target, Level string
	Functions           []pageFunction
}

type pageFunction struct {
	*Function
	Files   []pageFile
	Other   []*Row // without a line of a text that is known
	Modules *Node
	Holders []*Row // the lines that hold most at the peak
	Train   bool
}

type pageFile struct {
	Path  string
	Lines []pageLine
}

type pageLine struct {
	N    int
	Text string
	Row  *Row // nil for a line without a cost
	Cut  bool // lines are left out before it
}

// mostHolders bounds the lines that the page lists by what they hold.
const mostHolders = 12

// HTML writes l as a page that needs nothing else: the text with what is due to each line, the modules, and the memory at its peak.
func (l *Listing) HTML(w io.Writer, file string) error {
	data := pageData{File: file, Target: l.Target, Level: l.Level}
	for _, f := range l.Functions {
		rows := f.Rows(ByLine, l.Sources)
		x := pageFunction{Function: f, Modules: Tree(f.Rows(ByModule, l.Sources))}
		byFile := map[*File]map[int]*Row{}
		for _, r := range rows {
			x.Train = x.Train || r.Phases[Backward] != (Amount{})
			if r.File.Text(r.Line) == "" {
				x.Other = append(x.Other, r)
				continue
			}
			if byFile[r.File] == nil {
				byFile[r.File] = map[int]*Row{}
			}
			byFile[r.File][r.Line] = r
		}
		for of, at := range byFile {
			p := pageFile{Path: of.Path}
			last := 0
			for _, n := range l.shown(of, at) {
				p.Lines = append(p.Lines, pageLine{N: n, Text: of.Text(n), Row: at[n], Cut: last > 0 && n > last+1})
				last = n
			}
			x.Files = append(x.Files, p)
		}
		slices.SortFunc(x.Files, func(a, b pageFile) int { return cmp.Compare(a.Path, b.Path) })
		for _, r := range rows {
			if r.Held > 0 {
				x.Holders = append(x.Holders, r)
			}
		}
		slices.SortStableFunc(x.Holders, func(a, b *Row) int { return cmp.Compare(b.Held, a.Held) })
		x.Holders = x.Holders[:min(len(x.Holders), mostHolders)]
		data.Functions = append(data.Functions, x)
	}
	return page.Execute(w, data)
}
