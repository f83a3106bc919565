package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"dmir/base/sandbox"
	"dmir/base/tally"
	"dmir/gpu/artifact"
)

// reply is the JSON that the process writes.
type reply struct {
	Fault *rawFault
	Steps [][][3]int64 // of each step, of each argument: read, written, requested
	// Of each step.
	Runs, Longest []int64
}

// execute runs the process to its end, or stops it after timeout if that is not 0:
// with a signal first, so that it can report where it was. out takes what it writes. The process reaches
// no files but those in dir, and no network.
func execute(ctx context.Context, timeout time.Duration, out *stream, dir, exe string, args ...string) (*reply, error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	cmd := exec.CommandContext(limited, exe, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out.ctx, out.reply = limited, in
	runErr := sandbox.Start(cmd, sandbox.Policy{
		Read:  append(sandbox.Libraries(exe), exe, "/sys/devices/system/cpu"),
		Write: []string{dir, "/dev/null"},
	})
	if runErr == nil {
		runErr = cmd.Wait()
		tally.Took(tally.Emulated, cmd.ProcessState)
	}
	if out.failed != nil {
		return nil, out.failed
	}
	var r reply
	if err := json.Unmarshal(out.text, &r); err == nil && (r.Fault != nil || runErr == nil) {
		return &r, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if limited.Err() != nil {
		return &reply{Fault: &rawFault{Kind: string(Timeout), Step: -1, Param: -1, Msg: "it had to be killed"}}, nil
	}
	var exit *exec.ExitError
	if errors.As(runErr, &exit) {
		return &reply{Fault: &rawFault{Kind: string(Crash), Step: -1, Param: -1, Msg: fmt.Sprintf("%v %s", runErr, bytes.TrimSpace(errs.Bytes()))}}, nil
	}
	if runErr == nil {
		runErr = errors.New("the emulator's report cannot be read")
	}
	return nil, runErr
}

// reports converts the numbers of a run to reports with names.
func (r *reply) reports(p *artifact.Program) ([]StepReport, error) {
	if len(r.Steps) != len(p.Steps) || len(r.Runs) != len(p.Steps) || len(r.Longest) != len(p.Steps) {
		return nil, fmt.Errorf("the emulator reports %d steps of %d", len(r.Steps), len(p.Steps))
	}
	list := make([]StepReport, len(p.Steps))
	for i, s := range p.Steps {
		sr := &list[i]
		sr.Name, sr.Runs, sr.Longest = s.Name, r.Runs[i], r.Longest[i]
		for k, c := range r.Steps[i] {
			pr := ParamReport{Read: c[0], Written: c[1], Requested: c[2]}
			if of := p.KernelOf(&s); of != nil && k < len(of.Params) {
				pr.Name = of.Params[k].Name
			}
			sr.Params = append(sr.Params, pr)
			sr.Read += pr.Read
			sr.Written += pr.Written
			sr.Requested += pr.Requested
		}
	}
	return list, nil
}
