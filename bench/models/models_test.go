package models

import (
	"math"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

func load(t *testing.T, text string, err error) *program.Program {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	p := program.Load(source.New("model.dmir", text), program.Options{})
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			t.Fatalf("%s: %s\n%s", d.Code, d.Message, text)
		}
	}
	return p
}

// tiny are the smallest models of each family, for the element types they compute in.
func tiny(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, e := range []string{"f32", "bf16", "f16"} {
		c := Config{Layers: 2, Hidden: 16, Heads: 4, FF: 32, Vocabulary: 24, Sequence: 8, Batch: 2, Element: e, Rate: 0.01}
		grouped, tied := c, c
		grouped.KVHeads, tied.Tied = 2, true
		mix := Experts{Count: 4, Chosen: 2, Shared: 1, FF: 8, Dense: 1, Group: 4}
		latent := mix
		latent.Latent = Latent{Query: 6, KeyValue: 4, Plain: 4, Rotary: 2, Value: 4}
		for name, write := range map[string]func() (string, error){
			"gpt":            func() (string, error) { return GPT(c) },
			"gpt tied":       func() (string, error) { return GPT(tied) },
			"llama":          func() (string, error) { return Llama(grouped) },
			"palm":           func() (string, error) { return PaLM(c) },
			"mixture":        func() (string, error) { return Mixture(grouped, mix) },
			"latent mixture": func() (string, error) { return Mixture(c, latent) },
		} {
			text, err := write()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			texts[name+" "+e] = text
		}
	}
	return texts
}

// Each family learns its one batch: the loss begins near that of a guess, the logarithm of the vocabulary, and
// falls in each step after the first, whose weights are not yet those of the master weights.
func TestLearns(t *testing.T) {
	for name, text := range tiny(t) {
		t.Run(name, func(t *testing.T) {
			losses := losses(t, text, 6)
			if d := math.Abs(losses[0] - math.Log(24)); !(d < 0.1) {
				t.Errorf("the first loss is %v; that of a guess is %v", losses[0], math.Log(24))
			}
			for i := 2; i < len(losses); i++ {
				if !(losses[i] < losses[i-1]) {
					t.Errorf("the losses are %v", losses)
					break
				}
			}
		})
	}
}

func losses(t *testing.T, text string, steps int) (losses []float64) {
	t.Helper()
	p := load(t, text, nil)
	m, fn, err := driver.Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	args, err := interp.Inputs(t.Context(), fn, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := driver.Open(t.Context(), driver.Job{Program: p, Module: m, Fn: fn, Device: "reference"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range steps {
		outs, err := s.Step(t.Context(), args)
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, outs[0].Tensor.Float(0))
		args = make([]*tensor.Tensor, len(args))
	}
	return losses
}

// Models compute the same in every element type, up to its rounding: the first loss is that of f32.
func TestElementTypesAgree(t *testing.T) {
	texts := tiny(t)
	for name, text := range texts {
		family, found := strings.CutSuffix(name, " f32")
		if !found {
			continue
		}
		want := losses(t, text, 1)[0]
		for _, e := range []string{"bf16", "f16"} {
			if got := losses(t, texts[family+" "+e], 1)[0]; math.Abs(got-want) > 0.01*want {
				t.Errorf("%s: the loss is %v in %s and %v in f32", family, got, e, want)
			}
		}
	}
}

// Texts are as dmir fmt writes them.
func TestFormatted(t *testing.T) {
	for name, text := range tiny(t) {
		if got := format.File(parse.File(source.New("model.dmir", text))); got != text {
			t.Errorf("%s is not formatted:\n%s", name, text)
		}
	}
}

// The batches of the largest models are smaller than published, since dmir counts no more than 2⁶³ FLOP; what the
// optimizer computes, which does not grow with them, is less than a thousandth.
var (
	gpt175   = Config{Layers: 96, Hidden: 12288, Heads: 96, Vocabulary: 51200, Sequence: 2048, Batch: 1536, Tied: true}
	gpt1t    = Config{Layers: 128, Hidden: 25600, Heads: 160, Vocabulary: 51200, Sequence: 2048, Batch: 512, Tied: true}
	llama405 = Config{Layers: 126, Hidden: 16384, Heads: 128, KVHeads: 8, FF: 53248, Vocabulary: 128256, Sequence: 8192, Batch: 256}
	llama8   = Config{Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, FF: 14336, Vocabulary: 128256, Sequence: 8192, Batch: 512}
	palm540  = Config{Layers: 118, Hidden: 18432, Heads: 48, HeadSize: 256, Vocabulary: 256000, Sequence: 2048, Batch: 512}
	deepseek = Config{Layers: 61, Hidden: 7168, Heads: 128, FF: 18432, Vocabulary: 129280, Sequence: 4096, Batch: 3840}
	experts  = Experts{
		Count: 256, Chosen: 8, Shared: 1, FF: 2048, Dense: 3, Group: 256,
		Latent: Latent{Query: 1536, KeyValue: 512, Plain: 128, Rotary: 64, Value: 128},
	}
)

// gptParameters is formula (2) of Narayanan et al., arXiv 2104.04473, and the normalization after the last layer,
// which it leaves out.
func gptParameters(c Config) float64 {
	l, h, s, v := float64(c.Layers), float64(c.Hidden), float64(c.Sequence), float64(c.Vocabulary)
	return 12*l*h*h*(1+13/(12*h)+(v+s)/(12*l*h)) + 2*h
}

// gptFLOP is formula (3) of the same paper without the recomputation of the forward pass, a quarter of the layers'
// part: 96Bslh²(1 + s/6h + V/16lh) - 24Bslh²(1 + s/6h).
func gptFLOP(c Config) float64 {
	b, l, h, s, v := float64(c.Batch), float64(c.Layers), float64(c.Hidden), float64(c.Sequence), float64(c.Vocabulary)
	return 96*b*s*l*h*h*(1+s/(6*h)+v/(16*l*h)) - 24*b*s*l*h*h*(1+s/(6*h))
}

// palmFLOP is appendix B of Chowdhery et al., arXiv 2204.02311: 6N + 12LHQT for each token, N the parameters that a
// token meets in a product and Q the size of a head, the mean of a key's and a value's.
func palmFLOP(c Config, n, size float64) float64 {
	return float64(c.Batch) * float64(c.Sequence) * (6*n + 12*float64(c.Layers)*float64(c.Heads)*size*float64(c.Sequence))
}

// What dmir cost counts is what the papers state. Their formulas count the products of matrices alone, each score of
// attention, and twice the products of the forward pass for the gradient. dmir counts element-wise ops too; the scores
// of causal attention that are seen, about half of all; and for its gradient five products where the formulas count
// four, since it computes the scores again. With that taken into account no model is more than 1 % apart.
// above is how much more than by the published formula dmir counts in all.
func TestPublishedCounts(t *testing.T) {
	need.Long(t)
	for _, test := range []struct {
		name       string
		text       func() (string, error)
		config     Config
		key, value float64 // sizes of a head
		parameters float64
		exact      float64 // relative difference of parameters that is allowed
		flop       float64
		extra      float64 // FLOP of a token in products that the formula does not count
		above      float64
	}{
		{"GPT-3 175B", func() (string, error) { return GPT(gpt175) }, gpt175, 128, 128, gptParameters(gpt175), 1e-9, gptFLOP(gpt175), 0, -0.011},
		{"GPT 1T", func() (string, error) { return GPT(gpt1t) }, gpt1t, 160, 160, gptParameters(gpt1t), 1e-9, gptFLOP(gpt1t), 0, -0.0046},
		{"Llama 3 8B", func() (string, error) { return Llama(llama8) }, llama8, 128, 128, 8.03e9, 0.001, palmFLOP(llama8, 8.03e9-0.525e9, 128), 0, -0.0917},
		{"Llama 3 405B", func() (string, error) { return Llama(llama405) }, llama405, 128, 128, 405.85e9, 0.001, palmFLOP(llama405, 405.85e9-2.1e9, 128), 0, -0.032},
		{"PaLM 540B", func() (string, error) { return PaLM(palm540) }, palm540, 256, 256, 540.35e9, 0.0001, palmFLOP(palm540, 540.35e9, 256), 0, -0.0044},
		// 37.55 billion parameters meet a token, but for the embedding. Its products are those of the forward pass of
		// 58 layers three times: a quarter more places of experts than tokens use, and 5/3 of that to and from the places.
		{
			"DeepSeek-V3", func() (string, error) { return Mixture(deepseek, experts) }, deepseek, 192, 128, 671.0e9, 0.001,
			palmFLOP(deepseek, 37.55e9-0.93e9, 160), 58 * 2 * (3*0.25*8*3*7168*2048 + 5*256*10*7168), 0.0605,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, err := test.text()
			p := load(t, text, err)
			m := p.Modules[0]
			n, err := Parameters(m)
			if err != nil {
				t.Fatal(err)
			}
			if d := float64(n)/test.parameters - 1; math.Abs(d) > test.exact {
				t.Errorf("%d parameters; published %.0f, %.3f %% apart", n, test.parameters, 100*d)
			}
			got, ok := cost.Function(m.Func("train"), m, nil).FLOP.Int()
			if !ok {
				t.Fatal("the FLOP are not known")
			}
			if d := float64(got)/test.flop - 1; math.Abs(d-test.above) > 0.001 {
				t.Errorf("%.4g FLOP, %+.2f %% against the formula's %.4g; want %+.2f %%", float64(got), 100*d, test.flop, 100*test.above)
			}
			c := test.config
			scores := float64(c.Batch) * float64(c.Layers) * float64(c.Heads) * float64(c.Sequence) * float64(c.Sequence)
			formula := scores * 6 * (test.key + test.value)
			seen := (1 + 1/float64(c.Sequence)) / 2 * scores * (8*test.key + 6*test.value)
			want := test.flop - formula + seen + test.extra*float64(c.Batch)*float64(c.Sequence)
			if d := float64(got)/want - 1; d < 0 || d > 0.01 {
				t.Errorf("%.4g FLOP, %.4g of it in products: the other ops are %.2f %%", float64(got), want, 100*d)
			}
		})
	}
}

// What lint finds in a model of a realistic size is movement, which the text leaves to the compiler, and that it does
// not fit one device.
func TestLint(t *testing.T) {
	c := Config{Layers: 2, Hidden: 256, Heads: 8, FF: 1024, Vocabulary: 1024, Sequence: 128, Batch: 8}
	for name, write := range map[string]func() (string, error){
		"gpt":     func() (string, error) { return GPT(c) },
		"llama":   func() (string, error) { return Llama(c) },
		"palm":    func() (string, error) { return PaLM(c) },
		"mixture": func() (string, error) { return Mixture(c, Experts{Count: 8, Chosen: 2, Shared: 1, FF: 256, Dense: 1}) },
		"big":     func() (string, error) { return GPT(gpt175) },
	} {
		t.Run(name, func(t *testing.T) {
			text, err := write()
			for _, d := range lint.Run(t.Context(), load(t, text, err), lint.Options{}) {
				if d.Severity != diag.Hint && d.Code != "DM405" && !strings.HasPrefix(d.Code, "DM2") {
					t.Errorf("%s: %s", d.Code, d.Message)
				}
			}
		})
	}
}

// Hyperparameters that make no model are errors that name them.
func TestBadHyperparameters(t *testing.T) {
	ok := Config{Layers: 2, Hidden: 16, Heads: 4, Vocabulary: 24, Sequence: 8, Batch: 2}
	with := func(change func(*Config)) Config {
		c := ok
		change(&c)
		return c
	}
	mixture := func(e Experts) error { _, err := Mixture(ok, e); return err }
	gpt := func(c Config) error { _, err := GPT(c); return err }
	for _, test := range []struct {
		err  error
		want string
	}{
		{gpt(with(func(c *Config) { c.Layers = 0 })), "layers is 0"},
		{gpt(with(func(c *Config) { c.Batch = -1 })), "batch is -1"},
		{gpt(with(func(c *Config) { c.FF = -1 })), "must not be negative"},
		{gpt(with(func(c *Config) { c.KVHeads = 3 })), "4 heads cannot share 3"},
		{gpt(with(func(c *Config) { c.Hidden = 18 })), "18 is no multiple of 4 heads"},
		{gpt(with(func(c *Config) { c.Element = "i8" })), `element type "i8"`},
		{func() error { _, err := Llama(with(func(c *Config) { c.HeadSize = 3 })); return err }(), "head size 3 is odd"},
		{func() error { _, err := PaLM(with(func(c *Config) { c.HeadSize = 3 })); return err }(), "head size 3 is odd"},
		{mixture(Experts{}), "must be at least 1"},
		{mixture(Experts{Count: 2, Chosen: 3, FF: 8}), "3 experts for each token of 2"},
		{mixture(Experts{Count: 2, Chosen: 1, FF: 8, Dense: 3}), "dense 3 of 2 layers"},
		{mixture(Experts{Count: 2, Chosen: 1, FF: 8, Group: 3}), "groups of 3 tokens"},
		{mixture(Experts{Count: 2, Chosen: 1, FF: 8, Capacity: math.NaN()}), "capacity NaN"},
		{mixture(Experts{Count: 2, Chosen: 1, FF: 8, Latent: Latent{Query: 4}}), "latent sizes"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("error %v; want one with %q", test.err, test.want)
		}
	}
}
