package nvidia

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"dmir/gpu/artifact"
	"dmir/gpu/cuda"
	"dmir/gpu/device"
)

// A kernel that faults or hangs leaves its process of no use for the device: the
// driver's context is broken, and only the end of the process ends the kernel.
// Later programs run in other processes: copies of this program that receive
// requests on stdin and reply on stdout, both as gobs.

// childEnv is set in the environment of a copy of this program.
const childEnv = "DMIR_DEVICE_CHILD"

// request is one run. The program is a .dmx file and Foreign to the child: GPUs run
// foreign programs, the emulator does not.
type request struct {
	Device  string
	Program []byte
	Inputs  [][]byte
	Options device.Options
}

// reply is the result. After Lost the child is not used any more.
type reply struct {
	Result *device.Result
	Err    *wireError
	Lost   bool
}

// wireError is an error with the parts that callers distinguish.
type wireError struct {
	Text     string
	Fault    *cuda.Fault // without its Err
	Driver   *cuda.Error // that
	TooLarge bool
	Ended    int // 1: the time was over, 2: cancelled
}

func wired(err error) *wireError {
	if err == nil {
		return nil
	}
	w := &wireError{Text: err.Error()}
	var fault *cuda.Fault
	if errors.As(err, &fault) {
		lean := *fault
		errors.As(lean.Err, &w.Driver)
		w.Fault, lean.Err = &lean, nil
	}
	var large *cuda.TooLarge
	w.TooLarge = errors.As(err, &large)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		w.Ended = 1
	case errors.Is(err, context.Canceled):
		w.Ended = 2
	}
	return w
}

func (w *wireError) error() error {
	switch {
	case w == nil:
		return nil
	case w.Fault != nil:
		if w.Fault.Err = errors.New(w.Text); w.Driver != nil {
			w.Fault.Err = w.Driver
		}
		return w.Fault
	case w.TooLarge:
		return &cuda.TooLarge{Text: w.Text}
	case w.Ended == 1:
		return context.DeadlineExceeded
	case w.Ended == 2:
		return context.Canceled
	}
	return errors.New(w.Text)
}

// serves is true after main has called Serve, so that a copy of this program would
// serve requests and not do what the program does otherwise.
var serves bool

// inChild is true in a child, which starts no other processes.
var inChild = os.Getenv(childEnv) != ""

// Serve runs programs for a parent process and never returns, if the process was
// started as a child; otherwise it returns at once. The main function of a program
// that uses devices calls it first.
func Serve() {
	serves = true
	if !inChild {
		return
	}
	requests := make(chan request)
	in := gob.NewDecoder(os.Stdin)
	go func() { // ends this process if the parent ends while a kernel hangs
		for {
			var q request
			if err := in.Decode(&q); err != nil {
				os.Exit(0)
			}
			requests <- q
		}
	}()
	to := gob.NewEncoder(os.Stdout)
	os.Stdout = os.Stderr // output of libraries must not mix with replies
	for q := range requests {
		if err := to.Encode(answer(q)); err != nil {
			os.Exit(1)
		}
	}
}

func answer(q request) *reply {
	p, err := artifact.Read(bytes.NewReader(q.Program))
	if err != nil {
		return &reply{Err: wired(err)}
	}
	d, _, err := device.Find(q.Device)
	if err != nil {
		return &reply{Err: wired(err)}
	}
	r, err := d.Run(context.Background(), p, q.Inputs, q.Options)
	return &reply{Result: r, Err: wired(err), Lost: lostContext.Load()}
}

// child is a copy of this program.
type child struct {
	cmd    *exec.Cmd
	to     *gob.Encoder
	from   *gob.Decoder
	stderr *tail
	in     io.Closer
}

// errNoChild is the error if no child can be started.
var errNoChild = errors.New("cannot start a separate process for it")

func startChild() (*child, error) {
	if !serves || inChild {
		return nil, errNoChild
	}
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(path), stderr: &tail{}}
	c.cmd.Env = append(os.Environ(), childEnv+"=1")
	c.cmd.Stderr = c.stderr
	c.cmd.WaitDelay = time.Second
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	c.in, c.to, c.from = in, gob.NewEncoder(in), gob.NewDecoder(out)
	return c, nil
}

// ask sends a request and waits for the reply. If it returns an error, the child must
// be killed.
func (c *child) ask(ctx context.Context, q *request) (*reply, error) {
	type answer struct {
		r   *reply
		err error
	}
	got := make(chan answer, 1)
	go func() {
		var r reply
		err := c.to.Encode(q)
		if err == nil {
			err = c.from.Decode(&r)
		}
		got <- answer{&r, err}
	}()
	select {
	case a := <-got:
		if a.err != nil {
			if stderr := c.stderr.last(); stderr != "" {
				return nil, fmt.Errorf("the process that ran it ended: %s", stderr)
			}
			return nil, fmt.Errorf("the process that ran it ended: %w", a.err)
		}
		return a.r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// kill ends the child without waiting: a process with a hanging kernel may take long
// to end.
func (c *child) kill() {
	c.in.Close()
	c.cmd.Process.Kill()
	go c.cmd.Wait()
}

// tail is a writer that keeps the last bytes.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - 64<<10; over > 0 {
		t.text = slices.Clone(t.text[over:])
	}
	return len(b), nil
}

// last is the last line with text.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// requestFor is the request to run p.
func requestFor(name string, p *artifact.Program, inputs [][]byte, opts device.Options) (*request, error) {
	var file bytes.Buffer
	if err := p.Write(&file); err != nil {
		return nil, err
	}
	return &request{name, file.Bytes(), inputs, opts}, nil
}

// isolated is a device whose programs run in a child process, which is replaced
// after a program that broke its context.
type isolated struct {
	device.Device
	mu sync.Mutex
	c  *child
}

// Isolated is the GPU d with programs run by another process, so that no program can
// affect the next one, and Options.Timeout ends even those that hang in the driver. The process must have called Serve. Close ends it.
func Isolated(d device.Device) interface {
	device.Device
	io.Closer
} {
	return &isolated{Device: d}
}

// Close ends the process.
func (d *isolated) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop()
	return nil
}

func (d *isolated) drop() {
	if d.c != nil {
		d.c.kill()
		d.c = nil
	}
}

// Run sends the program to the process.
func (d *isolated) Run(ctx context.Context, p *artifact.Program, inputs [][]byte, opts device.Options) (*device.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := check(p); err != nil {
		return nil, err
	}
	r, err := d.send(ctx, p, inputs, opts)
	var fault *cuda.Fault
	if errors.As(err, &fault) && fault.Step == "" {
		err = located(ctx, d.Name(), p, inputs, opts, fault)
	}
	return r, err
}

func (d *isolated) send(ctx context.Context, p *artifact.Program, inputs [][]byte, opts device.Options) (*device.Result, error) {
	limit := opts.Timeout
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
		opts.Timeout = limit * 3 / 4 // leaves the child time to report
	}
	q, err := requestFor(d.Name(), p, inputs, opts)
	if err != nil {
		return nil, err
	}
	if d.c == nil {
		if d.c, err = startChild(); err != nil {
			return nil, err
		}
	}
	got, err := d.c.ask(ctx, q)
	if err != nil || got.Lost {
		d.drop()
	}
	if err != nil {
		return nil, err
	}
	return got.Result, got.Err.error()
}

// locateLimit bounds the search for a kernel that faults.
const locateLimit = 10 * time.Second

// located is the fault with its kernel, found by a process that runs the steps
// one by one.
func located(ctx context.Context, name string, p *artifact.Program, inputs [][]byte, opts device.Options, fault *cuda.Fault) *cuda.Fault {
	limit := locateLimit
	if opts.Timeout > 0 {
		limit = min(limit, opts.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var found *cuda.Fault
	_, err := alone(ctx, name, p, inputs, device.Options{OneByOne: true})
	switch {
	case errors.As(err, &found):
		return found
	case err != nil:
		fault.Found = "running the kernels one by one did not find the cause: " + err.Error()
	default:
		fault.Found = "no kernel fails when they run one by one"
	}
	return fault
}

// alone runs a program in a process that ends with it.
func alone(ctx context.Context, name string, p *artifact.Program, inputs [][]byte, opts device.Options) (*device.Result, error) {
	q, err := requestFor(name, p, inputs, opts)
	if err != nil {
		return nil, err
	}
	c, err := startChild()
	if err != nil {
		return nil, err
	}
	defer c.kill()
	got, err := c.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	return got.Result, got.Err.error()
}
