// Package peer runs a program that a benchmark compares with, a process that answers
// questions: a line of JSON each way. It begins with a line about itself.
package peer

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
)

// Process is a peer that was started.
type Process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	end error
}

// Start starts cmd and decodes what it reports about itself into about. end is the error
// of a process that ends without an answer.
func Start(cmd *exec.Cmd, about any, end error) (*Process, error) {
	p := &Process{cmd: cmd, end: end}
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	p.out.Buffer(nil, 1<<28) // an answer may hold a program
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.answer(about)
}

func (p *Process) answer(to any) error {
	if !p.out.Scan() {
		return errors.Join(p.end, p.out.Err())
	}
	return json.Unmarshal(p.out.Bytes(), to)
}

// Ask sends a question and waits for the answer.
func (p *Process) Ask(question, answer any) error {
	data, err := json.Marshal(question)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(data, '\n')); err != nil {
		return err
	}
	return p.answer(answer)
}

// Close ends the process.
func (p *Process) Close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }
