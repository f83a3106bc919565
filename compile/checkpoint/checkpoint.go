// Package checkpoint stores the state of repeated steps in a folder: one .npz file
// for each checkpoint, complete or not there, of which the last few are kept.
package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dmir/base/atomicfile"
	"dmir/base/filelock"
	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// Keep is how many checkpoints a folder keeps.
const Keep = 3

// metaName is the entry with what is no array.
const metaName = "checkpoint.json"

// maxMeta bounds the bytes of that entry.
const maxMeta = 1 << 20

// Version is that of the format.
const Version = 1

// Checkpoint is the state after a step.
type Checkpoint struct {
	Meta
	State []*tensor.Tensor // in the order of Meta.State
}

// Meta describes a checkpoint.
type Meta struct {
	Version int     `json:"version"`
	Func    string  `json:"func"` // for people
	Step    int     `json:"step"` // how many steps were made
	Seed    uint64  `json:"seed"` // of the inputs that are not given, and of the order of samples
	Shuffle bool    `json:"shuffle"`
	Data    []Data  `json:"data"`
	State   []Entry `json:"state"`
}

// Data is an input that has another value in each step.
type Data struct {
	Name    string `json:"name"`
	Samples int    `json:"samples"`
	Batch   int    `json:"batch"`
}

// Entry is an argument that is state.
type Entry struct {
	Name string `json:"name"` // without "%"
	Type string `json:"type"` // tensor<4x4xf32>
}

// Hold reserves the folder dir for this run, until release is called or the process ends, and
// creates it if it does not exist; what killed runs left half written in it is removed. It is
// filelock.ErrHeld while another run writes checkpoints there.
func Hold(dir string) (release func(), err error) {
	_, missing := os.Stat(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	switch err := filelock.Lock(f, false); {
	case errors.Is(err, filelock.ErrHeld):
		f.Close()
		return nil, err
	case err == nil:
		atomicfile.Sweep(dir)
	}
	return func() {
		if missing != nil {
			os.Remove(dir) // succeeds if no checkpoint came to be
		}
		f.Close()
	}, nil
}

// Path is the file of the checkpoint after a step.
func Path(dir string, step int) string {
	return filepath.Join(dir, fmt.Sprintf("step-%08d.npz", step))
}

// Write adds c to dir and removes all but the last Keep. An error leaves
// dir as it was.
func Write(dir string, c *Checkpoint) (path string, err error) {
	c.Version = Version
	path = Path(dir, c.Step)
	err = atomicfile.WriteFile(path, 0o644, func(w io.Writer) error {
		z := tensor.NewWriter(w)
		meta, err := json.MarshalIndent(c.Meta, "", "  ")
		if err == nil {
			err = z.File(metaName, meta)
		}
		for i, t := range c.State {
			if err == nil {
				err = z.Array(c.Meta.State[i].Name, t)
			}
		}
		if err != nil {
			return err
		}
		return z.Close()
	})
	if err != nil {
		return "", err
	}
	steps, err := Steps(dir)
	if err != nil {
		return "", err
	}
	for i := 0; i < len(steps)-Keep; i++ {
		if err := os.Remove(Path(dir, steps[i])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return path, nil
}

// Steps are those of the checkpoints in dir, ascending; none where dir is not there.
func Steps(dir string) ([]int, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var steps []int
	for _, f := range files {
		digits, ok := strings.CutPrefix(f.Name(), "step-")
		digits, ok2 := strings.CutSuffix(digits, ".npz")
		n, err := strconv.Atoi(digits)
		if ok && ok2 && err == nil && n >= 0 && f.Name() == filepath.Base(Path(dir, n)) {
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// OtherError reports that a checkpoint is not of this program or run.
type OtherError struct{ Text string }

func (e *OtherError) Error() string { return e.Text }

// Want is an argument that the state is read for.
type Want struct {
	Entry
	Elem  types.Elem
	Shape []int
}

// Read reads the checkpoint at path, whose state must be want, in any order;
// State and Meta.State have the order of want. An error is a *fs.PathError, an
// *OtherError, or tells how the file is damaged.
func Read(path string, want []Want) (*Checkpoint, error) {
	z, err := tensor.OpenNPZ(path)
	var system *fs.PathError
	switch {
	case errors.As(err, &system):
		return nil, system
	case err != nil:
		return nil, damaged(path, err)
	}
	defer z.Close()
	c := &Checkpoint{}
	meta, err := z.Bytes(metaName, maxMeta)
	if err != nil {
		return nil, damaged(path, err)
	}
	if err := json.Unmarshal(meta, &c.Meta); err != nil {
		return nil, damaged(path, fmt.Errorf("%s: %w", metaName, err))
	}
	switch {
	case c.Version > Version:
		return nil, &OtherError{fmt.Sprintf("has version %d of checkpoints; this dmir reads version %d", c.Version, Version)}
	case c.Version < 1 || c.Step < 0:
		return nil, damaged(path, fmt.Errorf("%s is not that of a checkpoint", metaName))
	}
	if err := c.fits(want); err != nil {
		return nil, err
	}
	c.Meta.State = nil
	for _, w := range want {
		t, err := z.Read(w.Name, w.Elem, w.Shape)
		if err != nil {
			return nil, damaged(path, err)
		}
		c.Meta.State, c.State = append(c.Meta.State, w.Entry), append(c.State, t)
	}
	return c, nil
}

// fits compares the state with what is wanted.
func (c *Checkpoint) fits(want []Want) error {
	have := map[string]string{}
	for _, e := range c.Meta.State {
		have[e.Name] = e.Type
	}
	for _, w := range want {
		switch typ, ok := have[w.Name]; {
		case !ok:
			return &OtherError{fmt.Sprintf("is of another program: it has no state %%%s", w.Name)}
		case typ != w.Type:
			return &OtherError{fmt.Sprintf("is of another program: its %%%s has type %s, not %s", w.Name, typ, w.Type)}
		}
		delete(have, w.Name)
	}
	for _, e := range c.Meta.State {
		if _, more := have[e.Name]; more {
			return &OtherError{fmt.Sprintf("is of another program: its state %%%s is no state here", e.Name)}
		}
	}
	return nil
}

func damaged(path string, err error) error {
	return fmt.Errorf("is damaged: %s", strings.TrimPrefix(err.Error(), path+": "))
}
