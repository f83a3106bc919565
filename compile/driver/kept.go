package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"dmir/analysis/machine"
	"dmir/base/local"
	"dmir/compile/target"
	"dmir/dialect/dim"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
	"dmir/syntax/diag"
)

// Compiled programs are kept in the user's cache by all that they follow from: the program's text, the
// flags, the device's architecture, the compiler and this build of dmir. Arrays in files are no part of
// it: they are read in each run.

// keptLimit is how many bytes of programs are kept.
const keptLimit = 256 << 20

// keptNotes is what a build says beside the program.
type keptNotes struct {
	Warnings []diag.Diagnostic `json:",omitempty"`
}

// keyed is what, with its text, the program follows from that the job is compiled to.
type keyed struct {
	Self, Toolchain, Arch string
	Path, Func            string
	Module                int
	Bind, Mesh            map[string]int64
	Devices               int
	Machine               *machine.Machine
	Tiles                 []byte
}

// keptPath is the file of the job's program for d; "" where it cannot be kept.
func (j Job) keptPath(ctx context.Context, d device.Device) string {
	k := keyed{Arch: d.Arch(), Path: j.Program.Src.Path, Func: j.Fn.Name, Module: slices.Index(j.Program.Modules, j.Module), Bind: j.Program.Bind, Mesh: j.On.Mesh, Devices: j.On.count(), Machine: j.Machine}
	var err error
	if k.Self, err = local.Self(); err != nil || k.Module < 0 {
		return ""
	}
	if c, ok := d.(device.Compiler); ok {
		if k.Toolchain, err = c.Toolchain(ctx); err != nil {
			return ""
		}
	}
	if file, err := target.For(k.Arch).TilesFile(); err == nil {
		k.Tiles, _ = os.ReadFile(file)
	}
	text, err := json.Marshal(k)
	if err != nil { // a machine of no finite speed
		return ""
	}
	dir, err := local.CacheDir("programs")
	if err != nil {
		return ""
	}
	h := sha256.New()
	h.Write(append(text, '\n'))
	io.WriteString(h, j.Program.Src.Text())
	return filepath.Join(dir, hex.EncodeToString(h.Sum(nil)[:16]))
}

// kept is the program in the file at path, ready to run on d; nil where there is none, or not all
// that it needs.
func (j Job) kept(ctx context.Context, d device.Device, path string) (*artifact.Program, []diag.Diagnostic) {
	if path == "" || !local.Kept(path) {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	var notes keptNotes
	p, err := artifact.ReadKept(f, &notes, j.array)
	if err != nil {
		return nil, nil
	}
	if prepare(ctx, d, p) != nil {
		return nil, nil
	}
	return p, notes.Warnings
}

// prepare compiles what devices of the kind of d run of p, if they do so on this machine.
func prepare(ctx context.Context, d device.Device, p *artifact.Program) (err error) {
	c, ok := d.(device.Compiler)
	if !ok {
		return nil
	}
	for _, q := range p.Parts() {
		if q.Object, _, err = c.Prepare(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// array is the data of a constant in a file, which only kernels read.
func (j Job) array(b *artifact.Buffer) ([]byte, error) {
	elem, ok := types.ElemByName(b.Elem)
	if !ok || j.Program.Arrays == nil {
		return nil, fmt.Errorf("%s cannot be read", b.Array.Path)
	}
	t := &types.Tensor{Elem: elem}
	for _, n := range b.Shape {
		t.Shape = append(t.Shape, dim.Const(n))
	}
	return types.InFile(t, &types.File{Path: b.Array.Path, Name: b.Array.Name, Arrays: j.Program.Arrays}).Mapped()
}

// keep writes p to the file at path. Without a cache, or one that takes it, the program is built
// again.
func keep(path string, p *artifact.Program, notes keptNotes) {
	dir := filepath.Dir(path)
	if path == "" || local.MakeDir(dir) != nil {
		return
	}
	f, err := os.CreateTemp(dir, local.NewPattern)
	if err != nil {
		return
	}
	defer os.Remove(f.Name()) // still exists only after an error
	err = p.Keep(io.Writer(f), notes)
	if closed := f.Close(); err != nil || closed != nil || local.Keep(f.Name(), path) != nil {
		return
	}
	local.Trim(dir, path, keptLimit)
}
