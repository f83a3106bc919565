package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"dmir/base/escape"
	"dmir/base/filelock"
	"dmir/compile/checkpoint"
	"dmir/compile/driver"
	"dmir/compile/tensor"
	"dmir/gpu/device"
	"dmir/syntax/diag"
)

// steps are the flags of repeated runs.
type stepFlags struct {
	Steps      *int   `help:"Repeat a function with state (dm.state) until it has made this many steps." placeholder:"N"`
	Shuffle    bool   `help:"Draw the order of the samples from the seed, another one in each pass over them."`
	Checkpoint string `complete:"dir" help:"Folder for the state: the last ${keep} checkpoints are kept." placeholder:"DIR"`
	Every      int    `help:"Write a checkpoint after each K steps, and not only after the last one." placeholder:"K"`
	Resume     bool   `help:"Go on from the last checkpoint; from the start where there is none."`
	Log        string `complete:"file:csv" help:"Write the scalar results of each step as CSV." placeholder:"FILE.csv"`
}

// stepped is a function that is repeated, in the form of text or compiled.
type stepped struct {
	name    string // without "@"
	args    []argument
	state   []int // by result the argument that it becomes, -1 for none
	initial func(given map[int]*tensor.Tensor) ([]*tensor.Tensor, error)
	pieces  map[int]driver.PieceReader // arguments of the first step that are given by device
	smaller string                     // what to run instead where a step takes too long
	open    func(progress func(device.Progress)) (*driver.Steps, error)
	failed  func(error) error
	warned  func([]diag.Diagnostic)
	labels  driver.Labels // what numbers of classes are; nil where that is not known
}

// steps is the number of steps, 0 where the function runs once.
func (f stepFlags) steps() int {
	if f.Steps == nil {
		return 0
	}
	return *f.Steps
}

// check returns an error for flags that do not go together.
func (f stepFlags) check() error {
	if f.Steps != nil && *f.Steps < 1 {
		return &failure{"DM612", fmt.Sprintf("--steps %d", *f.Steps), "is not a number of steps", "write --steps 100"}
	}
	if f.Every < 0 {
		return &failure{"DM612", fmt.Sprintf("--every %d", f.Every), "is not a number of steps", "write --every 50"}
	}
	for _, g := range []struct {
		set           bool
		flag, without string
		missing       bool
	}{
		{f.Shuffle, "--shuffle", "--steps", f.Steps == nil},
		{f.Checkpoint != "", "--checkpoint", "--steps", f.Steps == nil},
		{f.Log != "", "--log", "--steps", f.Steps == nil},
		{f.Every > 0, "--every", "--checkpoint", f.Checkpoint == ""},
		{f.Resume, "--resume", "--checkpoint", f.Checkpoint == ""},
	} {
		if g.set && g.missing {
			return &failure{"DM612", g.flag, "needs " + g.without, "add " + g.without + ", or remove it"}
		}
	}
	return nil
}

// repeat runs the steps of s.
func (c runCmd) repeat(a *app, s *stepped) error {
	if !driver.HasState(s.state) {
		return &failure{"DM621", "--steps", "@" + s.name + " has no state: no result is the next value of an argument", `say which one: -> (tensor<f32>, tensor<4x4xf32> {dm.state = "w"})`}
	}
	if c.Cold {
		return &failure{"DM612", "--cold", "is for timed runs, and --steps times none", "remove it"}
	}
	data, given, err := c.stepInputs(s)
	defer data.close()
	if err != nil {
		return err
	}
	if c.Checkpoint != "" && c.rank == 0 {
		release, err := c.hold()
		if err != nil {
			return err
		}
		defer release()
	}
	t := &repetition{runCmd: c, a: a, s: s, data: data}
	if err := t.begin(given); err != nil {
		return err
	}
	discard, err := c.prepare()
	if err != nil {
		return err
	}
	if err := t.all(); err != nil {
		discard()
		return err
	}
	return nil
}

// repetition is the steps of one command.
type repetition struct {
	runCmd
	a    *app
	s    *stepped
	data dataSet
	meta checkpoint.Meta
	args []*tensor.Tensor // of the next step; nil for those that stay

	run     *driver.Steps
	log     *stepLog
	first   int // steps that were made before
	saved   int // the step of the last checkpoint; -1: none
	path    string
	elapsed time.Duration
	last    []driver.Output
	history history
}

// begin makes the arguments of the first step, from a checkpoint if asked for.
func (t *repetition) begin(given map[int]*tensor.Tensor) (err error) {
	t.saved = -1
	if t.first, err = t.resumed(); err != nil {
		return err
	}
	if err := t.data.read(t.first, given); err != nil {
		return err
	}
	if t.args, err = t.s.initial(given); err != nil {
		return err
	}
	t.tellRandom(t.a, t.s.args, func(i int) bool {
		return given[i] != nil || t.s.pieces[i] != nil || t.first > 0 && slices.Contains(t.s.state, i)
	})
	for i, x := range given {
		t.checkLabels(i, x)
	}
	t.meta = checkpoint.Meta{Func: t.s.name, Seed: t.Seed, Shuffle: t.Shuffle, Data: t.data.describe()}
	var want []checkpoint.Want
	for _, in := range t.s.state {
		if in < 0 {
			continue
		}
		x := t.args[in]
		e := checkpoint.Entry{Name: t.s.args[in].name, Type: x.Type()}
		t.meta.State = append(t.meta.State, e)
		want = append(want, checkpoint.Want{Entry: e, Elem: x.Elem, Shape: x.Shape})
	}
	if t.first == 0 {
		return nil
	}
	return t.restore(want)
}

// hold reserves the folder of the checkpoints.
func (c runCmd) hold() (release func(), err error) {
	release, err = checkpoint.Hold(c.Checkpoint)
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, &failure{"DM622", c.Checkpoint, "another run writes its checkpoints there", "wait until it has ended, or name another folder"}
	case errors.Is(err, syscall.ENOTDIR):
		return nil, &failure{"DM603", c.Checkpoint, "is not a folder", "name a folder for the checkpoints"}
	case err != nil:
		return nil, cannotWrite(c.Checkpoint, err)
	}
	return release, nil
}

// resumed is the step of the checkpoint to go on from, 0 for none.
func (t *repetition) resumed() (int, error) {
	if t.Checkpoint == "" {
		return 0, nil
	}
	steps, err := checkpoint.Steps(t.Checkpoint)
	switch {
	case err != nil:
		return 0, cannotRead(t.Checkpoint, err)
	case len(steps) == 0:
		return 0, nil
	case !t.Resume:
		return 0, &failure{"DM622", t.Checkpoint, fmt.Sprintf("holds the checkpoint of step %d of an earlier run", steps[len(steps)-1]), "add --resume to go on from it, or name another folder"}
	}
	return steps[len(steps)-1], nil
}

// restore takes the state from the checkpoint after step first.
func (t *repetition) restore(want []checkpoint.Want) error {
	path := checkpoint.Path(t.Checkpoint, t.first)
	c, err := checkpoint.Read(path, want)
	var system *os.PathError
	var other *checkpoint.OtherError
	switch {
	case errors.As(err, &system):
		return cannotRead(path, err)
	case errors.As(err, &other):
		return &failure{"DM622", path, other.Text, "name the folder of this program's checkpoints, or a new one"}
	case err != nil:
		return &failure{"DM622", path, err.Error(), "remove it to go on from the checkpoint before it"}
	}
	same := func(what string, was, is any) error {
		return &failure{"DM622", path, fmt.Sprintf("was written with %s %v, not %v", what, was, is), "run with what it was written with, or start again in another folder"}
	}
	switch {
	case c.Step != t.first:
		return &failure{"DM622", path, fmt.Sprintf("is the checkpoint of step %d", c.Step), "give it the name of its step"}
	case c.Seed != t.Seed:
		return same("--seed", c.Seed, t.Seed)
	case c.Shuffle != t.Shuffle:
		return same("--shuffle", c.Shuffle, t.Shuffle)
	case !slices.Equal(c.Data, t.meta.Data):
		return same("the data", dataText(c.Data), dataText(t.meta.Data))
	}
	k := 0
	for _, in := range t.s.state {
		if in >= 0 {
			t.args[in] = c.State[k]
			k++
		}
	}
	t.saved, t.path = t.first, path
	return nil
}

func dataText(all []checkpoint.Data) string {
	var out []string
	for _, d := range all {
		out = append(out, fmt.Sprintf("%s (%d samples, %d a step)", d.Name, d.Samples, d.Batch))
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}

// all runs the steps and prints the result.
func (t *repetition) all() (err error) {
	show := newStepView(t)
	defer show.bar.done()
	if t.run, err = t.s.open(t.a.watch(show.bar, t.steps()-t.first, t.s.smaller)); err != nil {
		return t.s.failed(err)
	}
	defer t.run.Close()
	defer func() {
		var end exitStatus
		if err != nil && !errors.As(err, &end) {
			err = t.run.Failed(err)
		}
	}()
	t.s.warned(t.run.Warnings)
	if t.log, err = openLog(t.Log, t.Resume, t.first); err != nil {
		return err
	}
	defer t.log.close()
	step, interrupted := t.first, false
	for ; step < t.steps(); step++ {
		if interrupted, err = t.run.Ends(context.WithoutCancel(t.a.ctx), t.a.ctx.Err() != nil); err != nil {
			err = t.s.failed(err)
		}
		if err == nil && !interrupted {
			err = t.one(step, show)
		}
		if err != nil {
			show.done()
			return err
		}
		if interrupted {
			break
		}
	}
	show.done()
	rest := *t.a
	rest.ctx, t.a = context.WithoutCancel(t.a.ctx), &rest // an interrupt does not keep the results back
	if t.Checkpoint != "" && step > 0 && t.saved != step {
		if err := t.save(step); err != nil {
			return err
		}
	}
	if err := t.finish(step); err != nil {
		return err
	}
	if interrupted && t.rank > 0 {
		return exitStatus(exitCanceled)
	}
	if interrupted {
		escape.Fprintf(t.a.stderr, "dmir: interrupted after step %d of %d%s\n", step, t.steps(), t.goOn())
		return exitStatus(exitCanceled)
	}
	return nil
}

func (t *repetition) goOn() string {
	if t.Checkpoint == "" {
		return ""
	}
	return "; --resume goes on from there"
}

// one runs a step. An interrupt takes effect after it, so that there is a state to write.
func (t *repetition) one(step int, show *stepView) error {
	if step > t.first {
		for i := range t.args {
			t.args[i] = nil
		}
		if err := t.data.readArgs(step, t.args); err != nil {
			return err
		}
		for _, in := range t.data {
			t.checkLabels(in.index, t.args[in.index])
		}
	}
	start := time.Now()
	outs, err := t.run.Step(context.WithoutCancel(t.a.ctx), t.args)
	if err != nil {
		return t.s.failed(err)
	}
	took := time.Since(start)
	t.elapsed += took
	t.last = outs
	row := t.history.add(step+1, outs, took)
	if err := t.log.write(&t.history, row); err != nil {
		return err
	}
	show.step(row)
	if t.Every > 0 && (step+1)%t.Every == 0 {
		return t.save(step + 1)
	}
	return nil
}

// checkLabels warns once of labels in argument i that are no classes.
func (t *repetition) checkLabels(i int, x *tensor.Tensor) {
	if d := t.s.labels.Outside(i, t.s.args[i].name, x); d != nil && t.rank == 0 {
		t.s.warned([]diag.Diagnostic{*d})
		delete(t.s.labels, i)
	}
}

// current is the state after the last step, in the order of t.meta.State.
func (t *repetition) current() ([]driver.Output, error) {
	if len(t.history.rows) == 0 { // no step was made
		var outs []driver.Output
		for i, in := range t.s.state {
			if in >= 0 {
				outs = append(outs, driver.Output{Name: t.run.Names()[i], Type: t.args[in].Type(), Tensor: t.args[in]})
			}
		}
		return outs, nil
	}
	return t.run.Current(context.WithoutCancel(t.a.ctx))
}

// save writes the checkpoint after a step.
func (t *repetition) save(step int) error {
	outs, err := t.current()
	if err != nil {
		return t.s.failed(err)
	}
	if t.rank > 0 { // the first process writes what all have gathered
		t.saved = step
		return nil
	}
	c := &checkpoint.Checkpoint{Meta: t.meta}
	c.Step = step
	for _, o := range outs {
		c.State = append(c.State, o.Tensor)
	}
	if t.path, err = checkpoint.Write(t.Checkpoint, c); err != nil {
		return &failure{"DM603", t.Checkpoint, reason(err), writable(err) + "; earlier checkpoints are as they were"}
	}
	t.saved = step
	return nil
}
