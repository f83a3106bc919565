package present

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/units"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// The size of a chart on a page, in pixels, and of its margin.
const (
	pageWidth, pageHeight = 560, 300
	marginX, marginY      = 64, 28
)

type pageChart struct {
	Title, Ideal  string
	Width, Height int
	Left, Bottom  int
	X1, Y1        float64 // of the ideal line
	X2, Y2        float64
	Path          string
	Points        []pagePoint
	Ticks         []pageTick
}

type pagePoint struct {
	X, Y  float64
	Title string
}

type pageTick struct {
	X, Y     float64
	Label    string
	Vertical bool
}

type pagePlan struct {
	Number   int
	Cells    []string
	Sentence string
	Why      string
}

type pageSection struct {
	Title, Note string
	Columns     []string
	Plans       []pagePlan
}

type pageData struct {
	Title, Subtitle string
	Charts          []pageChart
	Sweep           [][]string
	SweepTitles     []string
	Sections        []pageSection
}

// HTML writes the points, one or a sweep, as a page that needs nothing else and runs no script.
func HTML(w io.Writer, m *machine.Machine, points []Point, limit int64) error {
	have := planned(points)
	if len(have) == 0 {
		return fmt.Errorf("there is no plan to show")
	}
	r := have[0].Result
	d := pageData{Title: "Plans for @" + r.Function, Subtitle: fmt.Sprintf("%s of %s · %s", m.Title, units.Bytes(limit), Headline(r))}
	if len(points) > 1 {
		d.SweepTitles = append([]string{"devices"}, sweepTitles(r)...)
		for _, p := range points {
			d.Sweep = append(d.Sweep, append([]string{fmt.Sprint(p.Devices)}, sweepCells(p, have[0])...))
		}
	}
	if len(have) > 1 {
		for _, c := range charts(have) {
			d.Charts = append(d.Charts, c.page())
		}
	}
	for _, p := range have {
		d.Sections = append(d.Sections, section(p.Result))
	}
	return page.Execute(w, d)
}

func section(r *plan.Result) pageSection {
	s := pageSection{Title: fmt.Sprintf("%d devices", r.Devices), Note: Optimality(r)}
	cols := columns(r)
	for _, c := range cols {
		s.Columns = append(s.Columns, c.title)
	}
	for i, p := range r.Plans {
		row := pagePlan{Number: i + 1, Sentence: Sentence(p), Why: p.Why}
		for _, c := range cols {
			row.Cells = append(row.Cells, c.cell(p))
		}
		s.Plans = append(s.Plans, row)
	}
	return s
}

// page lays c out.
func (c *chart) page() pageChart {
	low, high := c.bounds()
	x := func(at float64) float64 { return marginX + at*(pageWidth-2*marginX) }
	y := func(v float64) float64 { return pageHeight - marginY - up(v, low, high)*(pageHeight-2*marginY) }
	out := pageChart{
		Title: c.title, Ideal: c.ideal, Width: pageWidth, Height: pageHeight, Left: marginX, Bottom: pageHeight - marginY,
		X1: x(0), Y1: y(c.line(0)), X2: x(1), Y2: y(c.line(1)),
	}
	for i, n := range c.devices {
		p := pagePoint{x(c.at(n)), y(c.values[i]), fmt.Sprintf("%d devices: %s", n, c.show(c.values[i]))}
		out.Points = append(out.Points, p)
		out.Path += fmt.Sprintf("%.1f,%.1f ", p.X, p.Y)
		out.Ticks = append(out.Ticks, pageTick{p.X, pageHeight - marginY + 16, fmt.Sprint(n), false})
	}
	for _, v := range []float64{low, high} {
		out.Ticks = append(out.Ticks, pageTick{marginX - 8, y(v) + 4, c.show(v), true})
	}
	return out
}
