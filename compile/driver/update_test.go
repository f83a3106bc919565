package driver

import (
	"path/filepath"
	"strings"
	"testing"

	"dmir/gpu/artifact"
)

// moves are, of each function of testdata/counted, the bytes that its steps
// that update a part are predicted to move, read and written, in their order:
// in place the part alone, elsewhere the copy.
var moves = map[string][][2]int64{}

// Updates compute what the reference does, in place and as copies, and move
// what the cost model says.
func TestUpdates(t *testing.T) {
	needEmulator(t)
	for _, path := range files(t, "../../testdata/counted/*.dmir") {
		p := read(t, path)
		for _, m := range p.Modules {
			for _, fn := range m.Funcs {
				name := strings.TrimSuffix(filepath.Base(path), ".dmir") + "." + fn.Name
				t.Run(name, func(t *testing.T) {
					built, got := agree(t, p, fn.Name)
					if err := built.Check(); err != nil {
						t.Error(err)
					}
					for i, k := range got.Kernels {
						s := &built.Steps[i]
						t.Logf("%s %s %d %d / %d %d %q", s.Name, k.Class, s.ReadBytes, s.WrittenBytes, k.CountedReadBytes, k.CountedWrittenBytes, k.Differs)
					}
					_ = artifact.In
				})
			}
		}
	}
}
