package emulator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"dmir/gpu/artifact"
)

// The rates at which one core of a server of 2023 emulates kernels: bytes between a
// kernel and memory of elementwise kernels, and FLOP of contractions, whose operands
// are in shared memory and registers. Checks take most of the time.
const (
	BytesPerSecond = 150e6
	FLOPPerSecond  = 600e6
)

// work is the time of one run of a step in nanoseconds, estimated by the rates.
func work(s *artifact.Step) float64 {
	ns := (float64(s.ReadBytes)+float64(s.WrittenBytes))/BytesPerSecond*1e9 + float64(s.FLOP)/FLOPPerSecond*1e9
	return min(ns, 1<<60) // as the process can read it
}

// Progress is how far a run is.
type Progress struct {
	Step     int           // the index of the one that runs; -1 before the first
	Done     float64       // share of the work
	Expected time.Duration // of the whole run, by the rates; a loop with an unknown number of rounds counts once
}

func expected(work float64) time.Duration { return time.Duration(min(work, 1<<62)) }

// totalWork is the time of a run, estimated.
func totalWork(p *artifact.Program) float64 {
	total := 0.0
	for i, n := range p.Times() {
		total += work(&p.Steps[i]) * float64(n)
	}
	return total
}

// watch converts the work that the process reports for p to progress.
func watch(p *artifact.Program, progress func(Progress)) func(step int, done float64) {
	if progress == nil {
		return func(int, float64) {}
	}
	total := totalWork(p)
	at := Progress{Expected: expected(total)}
	return func(step int, done float64) {
		if step < 0 || step >= len(p.Steps) || total == 0 {
			return
		}
		at.Step, at.Done = step, max(at.Done, min(done/total, 1))
		progress(at)
	}
}

// stream is what the process writes: lines with progress, the buffers of collectives, and a
// text.
type stream struct {
	progress func(step int, done float64)
	exchange func(ctx context.Context, step int) (*exchange, error)
	ctx      context.Context // of the run
	reply    io.WriteCloser  // what the process reads
	text     []byte
	line     int       // where the last line of text starts
	pending  *exchange // whose bytes the process writes
	failed   error     // of a collective, which ended the run
}

func (s *stream) Write(b []byte) (int, error) {
	s.text = append(s.text, b...)
	for {
		if x := s.pending; x != nil {
			if len(s.text)-s.line < x.bytes {
				return len(b), nil
			}
			out, err := x.run(s.text[s.line : s.line+x.bytes])
			if err == nil {
				_, err = s.reply.Write(out)
			}
			if err != nil { // the process ends where its input does
				s.failed = err
				return 0, errors.Join(err, s.reply.Close())
			}
			s.text, s.pending = slices.Delete(s.text, s.line, s.line+x.bytes), nil
		}
		n := bytes.IndexByte(s.text[s.line:], '\n')
		if n < 0 {
			return len(b), nil
		}
		var step int
		var done float64
		end := s.line + n + 1
		if _, err := fmt.Sscanf(string(s.text[s.line:end]), "!%d\n", &step); err == nil && s.exchange != nil {
			if s.pending, s.failed = s.exchange(s.ctx, step); s.failed != nil {
				return 0, s.failed
			}
			s.text = slices.Delete(s.text, s.line, end)
			continue
		}
		if _, err := fmt.Sscanf(string(s.text[s.line:end]), "@%d %f\n", &step, &done); err != nil {
			s.line = end
			continue
		}
		s.text = append(s.text[:s.line], s.text[end:]...)
		s.progress(step, done)
	}
}
