package planned

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"dmir/compile/stages/stagestest"
)

// The tests count searches, so that they begin without what an earlier run has kept.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dmir-planned-*")
	if err != nil {
		panic(err)
	}
	os.Setenv("DMIR_CACHE", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// Figures that a process has kept are those that a later one finds without a search, with all that they say. Of
// a damaged file nothing is believed.
func TestKept(t *testing.T) {
	for name, text := range map[string]string{
		"layer":    strings.Replace(layer, "gelu", "logistic", 1),
		"@pod":     "dm.mesh @pod {data = 4}\n" + strings.Replace(layer, "%x: tensor<1024x256xf16>", "%x: tensor<1024x256xf16> {dm.sharding = #dm.at<split = @pod[{data}, {}]>}", 1),
		"pipeline": stagestest.Step{Stages: 2, Micro: 2, Schedule: "gpipe", Mesh: "pipe = 2"}.Text(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DMIR_CACHE", t.TempDir())
			p := load(t, text)
			fn := p.Funcs[0].Func
			another := func() (searched int64) { // process
				kept.list = nil
				before := searches.Load()
				f, err := Figures(t.Context(), p, fn, p.Target)
				if err != nil {
					t.Fatal(err)
				}
				want, err := each(t.Context(), p, fn, p.Target, arch(p.Target))
				if err != nil || len(f.Stages) > 0 != (len(want) > 1) || !f.Compiled {
					t.Errorf("%+v of %d functions: %v", f, len(want), err)
				}
				return searches.Load() - before
			}
			key, err := keyOf(p, fn, p.Target)
			if err != nil {
				t.Fatal(err)
			}
			path := fileOf(key)
			os.Remove(path) // of a machine on which it took long
			another()
			of := kept.list[0].of
			keep(path, of)
			if n := another(); n != 0 || !reflect.DeepEqual(kept.list[0].of, of) {
				t.Errorf("%d searches, kept\n%+v, not\n%+v", n, kept.list[0].of, of)
			}
			if err := os.WriteFile(path, []byte("{}"), 0o644); err != nil {
				t.Fatal(err)
			}
			if n := another(); n != 1 || !reflect.DeepEqual(kept.list[0].of, of) {
				t.Errorf("damaged: %d searches", n)
			}
		})
	}
}
