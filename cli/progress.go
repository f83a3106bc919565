package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"dmir/analysis/units"
	"dmir/base/escape"
	"dmir/dialect/ir"
	"dmir/gpu/device"
)

// progress is a progress bar on a terminal, and no output elsewhere. Calls after done
// have no effect.
type progress struct {
	mu   sync.Mutex
	over bool
	w    io.Writer
	pool *mpb.Progress
	bar  *mpb.Bar
	what string
}

// newProgress is a bar on w. It moves the cursor, which other output may not.
func newProgress(w io.Writer) *progress {
	if o, ok := w.(*output); ok {
		w = o.w
	}
	return &progress{w: w}
}

func (p *progress) step(done, total int, op *ir.Op) {
	what := ""
	if op != nil {
		what = escape.Terminal(op.Name)
	}
	p.stage(what, done, total)
}

// stage shows the current work; "" keeps what is shown.
func (p *progress) stage(what string, done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, ok := p.w.(*os.File); p.over || !ok || !isTerminal(f) {
		return
	}
	if what != "" {
		p.what = what
	}
	if p.bar == nil {
		p.pool = mpb.New(mpb.WithOutput(p.w), mpb.WithWidth(40))
		p.bar = p.pool.AddBar(int64(total),
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return p.what }, decor.WCSyncSpaceR)),
			mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)))
	}
	p.bar.SetTotal(int64(total), false)
	p.bar.SetCurrent(int64(done))
}

// long is the expected time from which a person is told before a run starts.
const long = 20 * time.Second

// watch shows the progress of runs on a slow device, of which there are rounds. Where
// they take long, it says so first, with a help on what to do instead.
func (a *app) watch(bar *progress, rounds int, help string) func(device.Progress) {
	round := 0
	return func(at device.Progress) {
		if at.At == 0 {
			if round++; round == 1 && at.Expected > long/time.Duration(max(rounds, 1)) {
				what := ""
				if rounds > 1 {
					what = " for each of " + count(rounds, "step")
				}
				escape.Fprintf(a.stderr, "dmir: the emulator, which checks every access, takes about %s%s: %s at %s and %s at %s\n    = help: %s\n", roughly(at.Expected), what,
					units.FLOP(at.FLOP), units.Rate(at.FLOPPerSecond), units.Bytes(at.Bytes), units.Bandwidth(at.BytesPerSecond), help)
			}
			bar.stage("compiling for the host", (round-1)*1000, rounds*1000)
			return
		}
		what := fmt.Sprintf("%s (%d/%d)", escape.Terminal(at.Step), at.At, at.Of)
		switch {
		case rounds <= 1:
			bar.stage(what, int(at.Done*1000), 1000)
		case at.Expected > time.Second: // else the steps themselves are the progress
			bar.stage(fmt.Sprintf("step %d of %d: %s", round, rounds, what), (round-1)*1000+int(at.Done*1000), rounds*1000)
		}
	}
}

// roughly is a time to the precision of an estimate.
func roughly(d time.Duration) string {
	switch {
	case d > 3*time.Hour:
		return fmt.Sprintf("%.0f hours", d.Hours())
	case d > 90*time.Second:
		return fmt.Sprintf("%.0f minutes", d.Minutes())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.bar == nil {
		return
	}
	p.bar.Abort(true)
	p.pool.Wait()
}

// The columns that a table takes on a terminal: at least those it needs, 120 if the
// terminal does not report its width, and no more than a line that can be read.
const (
	narrow = 60
	usual  = 120
	widest = 240
)

// width is how many columns a table may take: those in COLUMNS, else those of the
// terminal; 0, no limit, for what is no terminal.
func (a *app) width() int {
	n, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || n <= 0 {
		f, ok := a.stdout.w.(*os.File)
		if !ok || !isTerminal(f) {
			return 0
		}
		if n, _, err = term.GetSize(int(f.Fd())); err != nil || n <= 0 {
			return usual
		}
	}
	return min(max(n, narrow), widest)
}
