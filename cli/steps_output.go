package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"dmir/analysis/units"
	"dmir/base/atomicfile"
	"dmir/base/escape"
	"dmir/base/regular"
	"dmir/compile/driver"
)

// history is the scalar results of the steps. The first of them is the loss.
type history struct {
	names []string
	rows  []stepRow
}

type stepRow struct {
	step   int // from 1
	values []float64
	took   time.Duration
}

func (h *history) add(step int, outs []driver.Output, took time.Duration) stepRow {
	r := stepRow{step: step, took: took}
	first := h.rows == nil
	for _, o := range outs {
		if o.Tensor.Len() != 1 {
			continue
		}
		if first {
			h.names = append(h.names, o.Name)
		}
		r.values = append(r.values, o.Tensor.Float(0))
	}
	h.rows = append(h.rows, r)
	return r
}

// loss is the first scalar of all steps.
func (h *history) loss() []float64 {
	var out []float64
	for _, r := range h.rows {
		if len(r.values) > 0 {
			out = append(out, r.values[0])
		}
	}
	return out
}

// stepView shows the steps while they are made: a bar on a terminal, and lines,
// about twenty of them, which a terminal gets after the last step.
type stepView struct {
	t     *repetition
	bar   *progress
	lines bool // now
	each  int  // how many steps there are to a line
	shown int
}

// shownLines is about how many lines there are at most.
const shownLines = 20

func newStepView(t *repetition) *stepView {
	out, ok := t.a.stdout.w.(*os.File)
	v := &stepView{t: t, bar: newProgress(t.a.stderr), lines: !ok || !isTerminal(out)}
	v.each = max(1, (t.steps()-t.first+shownLines-1)/shownLines)
	return v
}

func (v *stepView) step(r stepRow) {
	what := "step " + strconv.Itoa(r.step)
	if len(r.values) > 0 {
		what += "  " + escape.Terminal(v.t.history.names[0]) + " " + number(r.values[0])
	}
	v.bar.stage(what, r.step-v.t.first, v.t.steps()-v.t.first)
	if v.lines {
		v.line(r)
	}
}

// line prints r where it is one of those shown.
func (v *stepView) line(r stepRow) {
	if v.t.OutputFormat == "json" || r.step%v.each != 0 && r.step != v.t.steps() && r.step != v.t.first+1 {
		return
	}
	if v.shown++; v.shown == 1 {
		escape.Fprintf(v.t.a.stdout, "%*s", v.width(), "step")
		for _, n := range v.t.history.names {
			escape.Fprintf(v.t.a.stdout, "  %-10s", n)
		}
		fmt.Fprintln(v.t.a.stdout, "  time")
	}
	fmt.Fprintf(v.t.a.stdout, "%*d", v.width(), r.step)
	for i, x := range r.values {
		fmt.Fprintf(v.t.a.stdout, "  %-*s", max(10, len(v.t.history.names[i])), number(x))
	}
	fmt.Fprintf(v.t.a.stdout, "  %s\n", units.Time(float64(r.took.Nanoseconds())))
}

func (v *stepView) width() int { return max(4, len(strconv.Itoa(v.t.steps()))) }

func (v *stepView) done() {
	v.bar.done()
	if v.lines {
		return
	}
	for _, r := range v.t.history.rows {
		v.line(r)
	}
}

func number(x float64) string { return fmt.Sprintf("%.5g", x) }

// plotWidth is how many columns a plot has at most.
const plotWidth = 60

// plot draws values as bars, each the mean of equally many values; where one is not
// finite stands a "×".
func plot(values []float64) string {
	n := min(len(values), plotWidth)
	means := make([]float64, n)
	lo, hi := math.Inf(1), math.Inf(-1)
	for i := range means {
		from, to := len(values)*i/n, len(values)*(i+1)/n
		for _, x := range values[from:to] {
			means[i] += x / float64(to-from)
		}
		if !math.IsNaN(means[i]) && !math.IsInf(means[i], 0) {
			lo, hi = min(lo, means[i]), max(hi, means[i])
		}
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, x := range means {
		switch {
		case math.IsNaN(x) || math.IsInf(x, 0):
			b.WriteRune('×')
		case hi > lo:
			b.WriteRune(bars[int(math.Round((x-lo)/(hi-lo)*float64(len(bars)-1)))])
		default:
			b.WriteRune(bars[0])
		}
	}
	return b.String()
}

// finish saves the results after the last step and prints them.
func (t *repetition) finish(step int) error {
	state, err := t.current()
	if err != nil {
		return t.s.failed(err)
	}
	res := &driver.Result{Device: t.run.Device, Why: t.run.Why, Outputs: t.run.Together(append(t.last, state...))}
	fileNames(res.Outputs)
	if err := t.runCmd.save(res); err != nil {
		return err
	}
	if t.OutputFormat == "json" {
		return t.json(step, res)
	}
	out, made := t.a.stdout, step-t.first
	if values := t.history.loss(); len(values) > 0 {
		escape.Fprintf(out, "\n%s  %s → %s  %s\n", t.history.names[0], number(values[0]), number(values[len(values)-1]), plot(values))
	}
	each := ""
	if made > 0 {
		each = ", " + units.Time(float64(t.elapsed.Nanoseconds())/float64(made)) + " a step"
	}
	from := ""
	if t.first > 0 {
		from = fmt.Sprintf(" after step %d", t.first)
	}
	copied := ""
	if t.run.Copied > 0 {
		copied = ", " + units.Bytes(t.run.Copied) + " of state copied after each"
	}
	escape.Fprintf(out, "\nmade %s of @%s%s on %s (%s)%s, %s of memory%s\n", count(made, "step"), t.s.name, from, t.run.Device, t.run.Why, each, units.Bytes(t.run.Peak), copied)
	if t.path != "" {
		escape.Fprintf(out, "  checkpoint  %s\n", t.path)
	}
	return t.listOutputs(t.a, res)
}

type jsonSteps struct {
	Device     string       `json:"device"`
	Why        string       `json:"why"`
	Func       string       `json:"func"`
	First      int          `json:"first"` // steps that an earlier run made
	Steps      int          `json:"steps"` // that there are now
	ElapsedNs  int64        `json:"elapsed_ns"`
	PeakBytes  int64        `json:"peak_bytes"`
	Copied     int64        `json:"copied_bytes"` // of state, after each step
	Checkpoint string       `json:"checkpoint,omitempty"`
	History    []jsonStep   `json:"history"`
	Outputs    []jsonOutput `json:"outputs"`
}

type jsonStep struct {
	Step   int                 `json:"step"`
	Ns     int64               `json:"ns"`
	Values map[string]*float64 `json:"values"` // scalar results; null where one is not finite
}

func (t *repetition) json(step int, res *driver.Result) error {
	out := jsonSteps{
		Device: res.Device, Why: res.Why, Func: t.s.name, First: t.first, Steps: step, ElapsedNs: t.elapsed.Nanoseconds(),
		PeakBytes: t.run.Peak, Copied: t.run.Copied, Checkpoint: t.path, History: []jsonStep{}, Outputs: []jsonOutput{},
	}
	for _, r := range t.history.rows {
		j := jsonStep{r.step, r.took.Nanoseconds(), map[string]*float64{}}
		for i, x := range r.values {
			j.Values[t.history.names[i]] = finite(x)
		}
		out.History = append(out.History, j)
	}
	for _, o := range res.Outputs {
		out.Outputs = append(out.Outputs, t.jsonOutput(o))
	}
	return writeJSON(t.a.stdout, out)
}

// stepLog is the CSV of the scalar results; nil writes nothing.
type stepLog struct {
	path string
	kept []byte // rows of earlier steps
	file *os.File
}

// maxLog bounds the log of an earlier run that is read.
const maxLog = 1 << 30

// openLog prepares the log at path. A run that goes on keeps the rows of the
// steps before it.
func openLog(path string, resume bool, first int) (*stepLog, error) {
	if path == "" {
		return nil, nil
	}
	l := &stepLog{path: path}
	if err := atomicfile.Check(path); err != nil {
		return nil, cannotWrite(path, err)
	}
	if !resume || first == 0 || atomicfile.IsStream(path) {
		return l, nil
	}
	f, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, cannotRead(path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxLog))
	if err != nil {
		return nil, cannotRead(path, err)
	}
	for i, line := range bytes.SplitAfter(text, []byte("\n")) {
		number, _, _ := bytes.Cut(line, []byte(","))
		step, err := strconv.Atoi(string(number))
		if i == 0 && string(number) != "step" || i > 0 && err != nil && len(line) > 0 && bytes.HasSuffix(line, []byte("\n")) {
			return nil, &failure{"DM622", path, fmt.Sprintf("is no log of steps: line %d", i+1), "name another file"}
		}
		if i == 0 || err == nil && step <= first && bytes.HasSuffix(line, []byte("\n")) {
			l.kept = append(l.kept, line...)
		}
	}
	return l, nil
}

// write adds a row; the first one begins the file.
func (l *stepLog) write(h *history, r stepRow) error {
	if l == nil {
		return nil
	}
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	if l.file == nil && len(l.kept) == 0 {
		w.Write(append(append([]string{"step"}, h.names...), "seconds"))
	}
	row := []string{strconv.Itoa(r.step)}
	for _, x := range r.values {
		row = append(row, strconv.FormatFloat(x, 'g', -1, 64))
	}
	w.Write(append(row, strconv.FormatFloat(r.took.Seconds(), 'g', 4, 64)))
	w.Flush()
	if l.file == nil {
		if err := atomicfile.WriteFile(l.path, 0o644, func(w io.Writer) error { _, err := w.Write(l.kept); return err }); err != nil {
			return cannotWrite(l.path, err)
		}
		f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return cannotWrite(l.path, err)
		}
		l.file = f
	}
	if _, err := l.file.Write(text.Bytes()); err != nil {
		return cannotWrite(l.path, err)
	}
	return nil
}

func (l *stepLog) close() {
	if l != nil && l.file != nil {
		l.file.Close()
	}
}
