package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"dmir/analysis/machine"
	planner "dmir/analysis/plan"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	"dmir/bench/models"
	"dmir/compile/planned"
	_ "dmir/compile/target/all"
	"dmir/syntax/source"
)

// hidden are the training steps and the plans whose exposed communication is held.
func texts(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, file := range map[string]string{"bert": "bert_encoder_train", "mlp": "mlp_train"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", file+".dmir"))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(text)
	}
	var err error
	if out["gpt2"], err = models.GPT(models.Config{Layers: 2, Hidden: 768, Heads: 12, Vocabulary: 50304, Sequence: 1024, Batch: 32, Rate: 0.01}); err != nil {
		t.Fatal(err)
	}
	if out["llama"], err = models.Llama(models.Config{Layers: 2, Hidden: 2048, Heads: 16, KVHeads: 8, FF: 5632, Vocabulary: 32000, Sequence: 2048, Batch: 16, Rate: 0.01}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestExposed(t *testing.T) {
	on, _ := machine.Lookup("dgx-h100")
	for name, text := range texts(t) {
		for _, fix := range []planner.Setting{{Data: 8}, {Tensor: 8}, {Data: 2, Tensor: 4}} {
			fix.Pipe, fix.Microbatches = 1, 1
			begin := time.Now()
			p := program.Load(source.New("step.dmir", text), program.Options{Target: on})
			q, err := request.New(p, request.Asked{Devices: 8})
			if err != nil {
				t.Fatal(name, err)
			}
			q.Options.Top, q.Options.Fix = 1, fix
			found, err := q.Search(t.Context())
			if err != nil {
				t.Log(name, err)
				continue
			}
			text, err := found.Write(found.Plans[0])
			if err != nil {
				t.Fatal(err)
			}
			if d := os.Getenv("DIR"); d != "" {
				os.WriteFile(filepath.Join(d, name+time.Now().Format("150405.000")+".dmir"), []byte(text), 0o600)
			}
			written := program.Load(source.New("planned.dmir", text), program.Options{Target: on})
			took := time.Since(begin)
			begin = time.Now()
			for _, f := range written.Funcs[:1] {
				if f.Mesh() == nil {
					continue
				}
				x := f.PerDevice().Figures(on)
				y, err := planned.Figures(t.Context(), written, f.Func, on)
				peak, _ := y.Peaks[0].Int()
				t.Logf("%s %v: as written %.4g ms, exposed %.4g; compiled %.4g ms, exposed %.4g, peak %.4g MB %v; %v plan, %v compile", name, found.Plans[0].Names, x.Time.Ns/1e6, x.ExposedNs/1e6, y.Time.Ns/1e6, y.ExposedNs/1e6, float64(peak)/1e6, err, took, time.Since(begin))
			}
		}
	}
}
