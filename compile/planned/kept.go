package planned

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"dmir/analysis/cost"
	"dmir/base/local"
	"dmir/dialect/dim"
)

// Figures that took long to find are kept in the user's cache for later processes of this build of dmir, by the same key as in memory.

const (
	keptFrom  = 100 * time.Millisecond // what is found sooner is not worth a file
	keptLimit = 8 << 20                // bytes of all files
)

// keptFigures are figures of which no size is open, as JSON.
type keptFigures struct {
	cost.Figures
	Kernels, Moved int64
	Peaks          []int64
	Stages         []keptStage
}

type keptStage struct {
	Func           string
	Of             keptFigures
	BusyNs, WaitNs float64
}

// pack is f, without the sizes that are open.
func pack(f cost.Figures) keptFigures {
	k := keptFigures{Figures: f}
	k.Kernels, _ = f.Kernels.Int()
	k.Moved, _ = f.Moved.Int()
	for _, d := range f.Peaks {
		n, _ := d.Int()
		k.Peaks = append(k.Peaks, n)
	}
	for _, s := range f.Stages {
		k.Stages = append(k.Stages, keptStage{s.Func, pack(s.Figures), s.BusyNs, s.WaitNs})
	}
	return k
}

func (k keptFigures) figures() cost.Figures {
	f := k.Figures
	f.Kernels, f.Moved, f.Peaks, f.Stages = dim.Const(k.Kernels), dim.Const(k.Moved), nil, nil
	for _, n := range k.Peaks {
		f.Peaks = append(f.Peaks, dim.Const(n))
	}
	for _, s := range k.Stages {
		f.Stages = append(f.Stages, cost.StageFigures{Func: s.Func, Figures: s.Of.figures(), BusyNs: s.BusyNs, WaitNs: s.WaitNs})
	}
	return f
}

// fileOf is the file of the figures with a key; "" where there can be none.
func fileOf(key [sha256.Size]byte) string {
	self, err := local.Self()
	if err != nil {
		return ""
	}
	dir, err := local.CacheDir("figures")
	if err != nil {
		return ""
	}
	name := sha256.Sum256(append([]byte(self), key[:]...))
	return filepath.Join(dir, hex.EncodeToString(name[:16]))
}

// read is the figures in a file.
func read(path string) (f cost.Figures, ok bool) {
	if path == "" || !local.Kept(path) {
		return f, false
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return f, false
	}
	var k keptFigures
	if json.Unmarshal(text, &k) != nil {
		return f, false
	}
	return k.figures(), true
}

// keep writes f to a file, if that says all of it. Where it cannot be written, later processes find f again.
func keep(path string, f cost.Figures) {
	text, err := json.Marshal(pack(f))
	if path == "" || err != nil { // a time that is no number
		return
	}
	var k keptFigures
	if json.Unmarshal(text, &k) != nil || !reflect.DeepEqual(k.figures(), f) {
		return
	}
	dir := filepath.Dir(path)
	if local.MakeDir(dir) != nil {
		return
	}
	made, err := os.CreateTemp(dir, local.NewPattern)
	if err != nil {
		return
	}
	defer os.Remove(made.Name()) // still exists only after an error
	_, err = made.Write(text)
	if closed := made.Close(); err != nil || closed != nil || local.Keep(made.Name(), path) != nil {
		return
	}
	local.Trim(dir, path, keptLimit)
}
