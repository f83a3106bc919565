package present

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/units"
	"dmir/base/escape"
)

// A Point is what a number of devices gives: plans, or why there is none.
type Point struct {
	Devices int
	Result  *plan.Result
	Err     error
}

// best is the best plan of p, nil where there is none.
func (p Point) best() *plan.Plan {
	if p.Result == nil || len(p.Result.Plans) == 0 {
		return nil
	}
	return p.Result.Plans[0]
}

// cost is the seconds that devices spend on one token, or sample.
func (p Point) cost() float64 { return float64(p.Devices) / perSecond(p.Result, p.best()) }

type jsonError struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Help    string `json:"help,omitempty"`
}

// MarshalJSON is the result, or the number of devices with the error.
func (p Point) MarshalJSON() ([]byte, error) {
	if p.Err == nil {
		return json.Marshal(p.Result)
	}
	e := jsonError{Message: p.Err.Error()}
	var why *plan.Error
	if errors.As(p.Err, &why) {
		e = jsonError{why.Code, why.Msg, why.Help}
	}
	return json.Marshal(struct {
		Devices int       `json:"devices"`
		Error   jsonError `json:"error"`
	}{p.Devices, e})
}

// planned are the points that have a plan.
func planned(points []Point) []Point {
	var out []Point
	for _, p := range points {
		if p.best() != nil {
			out = append(out, p)
		}
	}
	return out
}

// Sweep prints the best plan of each number of devices, and charts of its time and cost.
func Sweep(w io.Writer, m *machine.Machine, points []Point, o Options) {
	have := planned(points)
	if len(have) == 0 {
		return
	}
	r := have[0].Result
	fmt.Fprint(w, o.paint(bold, escape.Terminal("@"+strings.TrimPrefix(r.Function, "@"))))
	escape.Fprintf(w, " on %s of %s · %s\n\n", m.Title, units.Bytes(r.Limit), Headline(r))
	batch(w, r, o)
	rows := [][]string{append([]string{"devices"}, sweepTitles(r)...)}
	for _, p := range points {
		rows = append(rows, append([]string{fmt.Sprint(p.Devices)}, sweepCells(p, have[0])...))
	}
	left := make([]bool, len(rows[0]))
	left[len(left)-1] = true
	grid(w, o, left, rows)
	if len(have) < 2 {
		return
	}
	for _, c := range charts(have) {
		fmt.Fprintln(w)
		c.text(w, o)
	}
}

func sweepTitles(r *plan.Result) []string {
	return []string{"time", unit(r) + "s/s", "scaling", "device time/" + unit(r), "MFU", "memory", "gap", "plan"}
}

// sweepCells are the figures of a point. Its scaling is the rate of each device against that of the
// first point.
func sweepCells(p, first Point) []string {
	best := p.best()
	if best == nil {
		cells := []string{none, none, none, none, none, none, none, "no plan"}
		if p.Err != nil {
			cells[len(cells)-1] += ": " + p.Err.Error()
		}
		return cells
	}
	return []string{
		seconds(best.Time), units.Count(perSecond(p.Result, best)), percent(first.cost() / p.cost()), seconds(p.cost()), percent(best.MFU),
		units.Bytes(best.Memory.Total), percent(p.Result.Gap), Mesh(best),
	}
}

// charts are those of a sweep with a plan for two numbers of devices or more.
func charts(points []Point) []chart {
	time := chart{title: "time of a step", show: seconds, ideal: "ideal: half the time on twice the devices", slope: -1}
	cost := chart{title: "device time for each " + unit(points[0].Result), show: seconds, ideal: "ideal: the same on any number of devices"}
	for _, p := range points {
		time.add(p.Devices, p.best().Time)
		cost.add(p.Devices, p.cost())
	}
	return []chart{time, cost}
}

// A chart has one quantity over the number of devices, both axes logarithmic, and a line from the first
// point with the slope of ideal scaling.
type chart struct {
	title, ideal string
	show         func(float64) string
	slope        float64
	devices      []int
	values       []float64
}

func (c *chart) add(devices int, value float64) {
	c.devices, c.values = append(c.devices, devices), append(c.values, value)
}

// at is where a number of devices lies along the axis, from 0 to 1.
func (c *chart) at(devices int) float64 {
	first, last := math.Log(float64(c.devices[0])), math.Log(float64(c.devices[len(c.devices)-1]))
	if last == first {
		return 0
	}
	return (math.Log(float64(devices)) - first) / (last - first)
}

// line is the ideal value at a place along the axis.
func (c *chart) line(at float64) float64 {
	first, last := float64(c.devices[0]), float64(c.devices[len(c.devices)-1])
	return c.values[0] * math.Pow(last/first, at*c.slope)
}

// bounds are the least and the largest value, the ideal ones included.
func (c *chart) bounds() (low, high float64) {
	low, high = c.line(1), c.line(1)
	for _, v := range append([]float64{c.line(0)}, c.values...) {
		low, high = min(low, v), max(high, v)
	}
	if high < low*1.5 { // less would show differences of no weight
		high = low * 1.5
	}
	return low, high
}

// up is where a value lies between the bounds, from 0 to 1.
func up(v, low, high float64) float64 { return math.Log(v/low) / math.Log(high/low) }

// The size of a chart on a terminal, in characters.
const (
	chartRows   = 9
	chartColumn = 8 // between two numbers of devices
	chartMost   = 72
)

// text draws c.
func (c *chart) text(w io.Writer, o Options) {
	low, high := c.bounds()
	labels := make([]string, chartRows)
	most := 0
	for _, row := range []int{0, chartRows / 2, chartRows - 1} {
		labels[row] = c.show(low * math.Pow(high/low, 1-float64(row)/(chartRows-1)))
		most = max(most, utf8.RuneCountInString(labels[row]))
	}
	width := min((len(c.devices)-1)*chartColumn+1, chartMost)
	if o.Width > 0 {
		width = max(min(width, o.Width-most-8), 10)
	}
	canvas := make([][]rune, chartRows)
	for i := range canvas {
		canvas[i] = []rune(strings.Repeat(" ", width))
	}
	row := func(v float64) int { return (chartRows - 1) - int(math.Round(up(v, low, high)*(chartRows-1))) }
	for x := range width {
		canvas[row(c.line(float64(x)/float64(width-1)))][x] = '·'
	}
	place := func(i int) int { return int(math.Round(c.at(c.devices[i]) * float64(width-1))) }
	for i, v := range c.values {
		canvas[row(v)][place(i)] = '●'
	}
	fmt.Fprintln(w, o.paint(bold, c.title)+o.paint(faint, "  ·  "+c.ideal))
	for i, line := range canvas {
		fmt.Fprintf(w, "%s%s ┤%s\n", strings.Repeat(" ", most-utf8.RuneCountInString(labels[i])), labels[i], strings.TrimRight(string(line), " "))
	}
	axis := []rune(strings.Repeat(" ", width+8))
	end := 0
	for i, n := range c.devices {
		label := fmt.Sprint(n)
		if at := place(i); at >= end {
			copy(axis[at:], []rune(label))
			end = at + len(label) + 1
		}
	}
	fmt.Fprintf(w, "%s └%s\n", strings.Repeat(" ", most), strings.Repeat("─", width))
	fmt.Fprintf(w, "%s  %s devices\n", strings.Repeat(" ", most), strings.TrimRight(string(axis), " "))
}
