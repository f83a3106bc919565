package checkpoint_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dmir/base/filelock"
	"dmir/compile/checkpoint"
	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// state is a checkpoint with a tensor of each kind of elements, and what reads it.
func state(step int) (*checkpoint.Checkpoint, []checkpoint.Want) {
	c := &checkpoint.Checkpoint{Meta: checkpoint.Meta{Func: "step", Step: step, Seed: 7, Shuffle: true, Data: []checkpoint.Data{{Name: "x", Samples: 10, Batch: 2}}}}
	var want []checkpoint.Want
	for i, elem := range []types.Elem{types.F32, types.BF16, types.F16, types.F64, types.F8E5M2, types.I64, types.UI64, types.I1} {
		t := tensor.Random(elem, []int{3, 2}, 1, uint64(i))
		if elem == types.F32 {
			t.F32[0], t.F32[1], t.F32[2] = float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1))
		}
		e := checkpoint.Entry{Name: "a" + elem.String(), Type: t.Type()}
		c.State, c.Meta.State = append(c.State, t), append(c.Meta.State, e)
		want = append(want, checkpoint.Want{Entry: e, Elem: elem, Shape: t.Shape})
	}
	return c, want
}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	for step := range 5 {
		c, _ := state(step)
		if _, err := checkpoint.Write(dir, c); err != nil {
			t.Fatal(err)
		}
	}
	steps, err := checkpoint.Steps(dir)
	if err != nil || !slices.Equal(steps, []int{2, 3, 4}) {
		t.Fatal("the last three stay", steps, err)
	}
	c, want := state(4)
	slices.Reverse(want)
	got, err := checkpoint.Read(checkpoint.Path(dir, 4), want)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(c.State)
	for i := range c.State {
		if !bytes.Equal(tensor.Pack(got.State[i]), tensor.Pack(c.State[i])) {
			t.Errorf("%s came back with other bits", want[i].Type)
		}
	}
	if got.Step != 4 || got.Seed != 7 || !got.Shuffle || !slices.Equal(got.Data, c.Data) {
		t.Errorf("came back as %+v", got.Meta)
	}
}

// What is written is there whole or not at all, and the checkpoints before it stay.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	first, want := state(1)
	if _, err := checkpoint.Write(dir, first); err != nil {
		t.Fatal(err)
	}
	broken, _ := state(2)
	broken.State[3] = &tensor.Tensor{Elem: types.F64, Shape: []int{3, 2}} // has no elements: writing it ends in the middle
	func() {
		defer func() { recover() }()
		checkpoint.Write(dir, broken)
	}()
	steps, err := checkpoint.Steps(dir)
	if err != nil || !slices.Equal(steps, []int{1}) {
		t.Fatal(steps, err)
	}
	if _, err := checkpoint.Read(checkpoint.Path(dir, 1), want); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	c, want := state(1)
	path, err := checkpoint.Write(dir, c)
	if err != nil {
		t.Fatal(err)
	}
	var other *checkpoint.OtherError
	for text, w := range map[string][]checkpoint.Want{
		"no state %new":        append(slices.Clone(want), checkpoint.Want{Entry: checkpoint.Entry{Name: "new", Type: "tensor<f32>"}}),
		"is no state here":     want[1:],
		"has type tensor<3x2x": {{Entry: checkpoint.Entry{Name: want[0].Name, Type: "tensor<6xf32>"}}},
	} {
		if _, err := checkpoint.Read(path, w); !errors.As(err, &other) || !strings.Contains(other.Text, text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := checkpoint.Read(filepath.Join(dir, "nowhere"), want); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(whole); n += 97 { // a copy that was cut off
		if err := os.WriteFile(path, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := checkpoint.Read(path, want); err == nil || !strings.Contains(err.Error(), "is damaged") || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}

// One byte that differs, as of a copy that went wrong, is found or changes nothing that is read.
func TestOtherByte(t *testing.T) {
	c, want := state(1)
	path, err := checkpoint.Write(t.TempDir(), c)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found, tried := 0, 0
	for i := 0; i < len(whole); i += 11 {
		tried++
		whole[i] ^= 0x10
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
		whole[i] ^= 0x10
		got, err := checkpoint.Read(path, want)
		if err != nil {
			found++
			continue
		}
		for j := range c.State {
			if !bytes.Equal(tensor.Pack(got.State[j]), tensor.Pack(c.State[j])) {
				t.Errorf("byte %d of %d changes %%%s", i, len(whole), want[j].Name)
			}
		}
		if got.Step != c.Step || got.Seed != c.Seed {
			t.Errorf("byte %d of %d changes the step or the seed", i, len(whole))
		}
	}
	if found < tried/2 {
		t.Errorf("%d of %d bytes that differ are found", found, tried)
	}
}

// FuzzRead: any bytes give a checkpoint or an error of one line.
func FuzzRead(f *testing.F) {
	c, want := state(1)
	path, err := checkpoint.Write(f.TempDir(), c)
	if err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("PK\x05\x06"))
	file := filepath.Join(f.TempDir(), "x.npz")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := checkpoint.Read(file, want)
		if err == nil && (len(c.State) != len(want) || c.Step < 0) {
			t.Errorf("read %+v", c.Meta)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error %q", err)
		}
	})
}

// One run at a time writes to a folder; the next one removes what a killed one left.
func TestHold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	release, err := checkpoint.Hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !filelock.Supported {
		t.Skip("this system has no locks")
	}
	if _, err := checkpoint.Hold(dir); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("a second run: %v", err)
	}
	release()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the empty folder is left: %v", err)
	}
	left := filepath.Join(dir, ".dmir-0123abcd")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(left, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	release, err = checkpoint.Hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("the folder holds %v, %v", files, err)
	}
}
