package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"dmir/base/atomicfile"
	"dmir/compile/driver"
	"dmir/compile/sparse"
	"dmir/compile/tensor"
)

// prepare creates the folder of the outputs and checks, before a run that may take
// long, that it can be written to. discard removes it again if it is new.
func (c runCmd) prepare() (discard func(), err error) {
	discard = func() {}
	if c.Output == "" {
		return discard, nil
	}
	var made []string // the inner ones first
	for dir := filepath.Clean(c.Output); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
		made = append(made, dir)
	}
	discard = func() {
		for _, dir := range made {
			os.Remove(dir) // fails if the folder is not empty, as intended
		}
	}
	if err := os.MkdirAll(c.Output, 0o755); err != nil {
		discard()
		return discard, cannotWrite(c.Output, err)
	}
	probe, err := os.MkdirTemp(c.Output, ".dmir-*")
	if err != nil {
		discard()
		return discard, cannotWrite(c.Output, err)
	}
	return discard, os.Remove(probe)
}

// outputFile is a file of --output.
type outputFile struct {
	name   string
	tensor *tensor.Tensor
	sparse *sparse.Tensor // in place of tensor
}

// save writes the file at path.
func (f outputFile) save(path string) error {
	if f.sparse != nil {
		return atomicfile.WriteFile(path, 0o644, f.sparse.WriteNPZ)
	}
	return tensor.SaveNPY(path, f.tensor)
}

// fileName is the name of the file for an output.
func fileName(o driver.Output) string {
	if o.Sparse != nil {
		return o.Name + ".npz"
	}
	return o.Name + ".npy"
}

// outputFiles are those of the results, or of their pieces.
func outputFiles(res *driver.Result) (out []outputFile) {
	for _, o := range res.Outputs {
		for _, p := range o.Pieces {
			out = append(out, outputFile{fmt.Sprintf("%s.%d.npy", o.Name, p.Device), p.Tensor, nil})
		}
		if o.Pieces == nil {
			out = append(out, outputFile{fileName(o), o.Tensor, o.Sparse})
		}
	}
	return out
}

// save writes the outputs to temporary files and renames them when all are complete,
// so that an error does not replace a part of an older run's results.
func (c runCmd) save(res *driver.Result) error {
	if c.Output == "" {
		return nil
	}
	tmp, err := os.MkdirTemp(c.Output, ".dmir-*")
	if err != nil {
		return cannotWrite(c.Output, err)
	}
	defer os.RemoveAll(tmp)
	files := outputFiles(res)
	for _, f := range files {
		if err := atomicfile.Check(filepath.Join(c.Output, f.name)); err != nil {
			return cannotWrite(filepath.Join(c.Output, f.name), err)
		}
		if err := f.save(filepath.Join(tmp, f.name)); err != nil {
			return cannotWrite(filepath.Join(c.Output, f.name), err)
		}
	}
	for _, f := range files {
		name := f.name
		if err := atomicfile.Move(filepath.Join(tmp, name), filepath.Join(c.Output, name)); err != nil {
			return cannotWrite(filepath.Join(c.Output, name), err)
		}
	}
	return nil
}
