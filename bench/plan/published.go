package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"dmir/analysis/machine"
	"dmir/analysis/pipelining"
	"dmir/analysis/plan"
	"dmir/bench/models"
	"dmir/dialect/types"
)

// A Set is a file of published training steps; published.toml describes its fields.
type Set struct {
	Models   map[string]Model        `toml:"models"`
	Clusters map[string]machine.Spec `toml:"clusters"`
	Runs     []Run                   `toml:"run"`

	clusters map[string]*machine.Machine
}

// A Model is the hyperparameters of a published model.
type Model struct {
	Family string `toml:"family"` // gpt, llama, palm or mixture
	models.Config
	Mixture models.Experts `toml:"mixture"`
}

// A Run is a published training step.
type Run struct {
	Name    string `toml:"name"`
	Model   string `toml:"model"`
	Cluster string `toml:"cluster"` // of the file or of dmir
	Devices int    `toml:"devices"`
	Batch   int    `toml:"batch"` // sequences
	Source  string `toml:"source"`
	Checked string `toml:"checked"` // with which text it was compared
	Note    string `toml:"note"`
	Plan    Plan   `toml:"plan"`
	Figure  Figure `toml:"figure"`
	Also    Figure `toml:"also"` // a second figure of the same step; may be absent
}

// A Plan is what is published of how a step was divided.
type Plan struct {
	Data         int    `toml:"data"`
	Context      int    `toml:"context"`
	Expert       int    `toml:"expert"`
	Tensor       int    `toml:"tensor"`
	Pipe         int    `toml:"pipe"`
	Chunks       int    `toml:"chunks"`
	Microbatches int    `toml:"microbatches"`
	Schedule     string `toml:"schedule"`
	Recompute    string `toml:"recompute"`
	States       string `toml:"states"`
}

func (p Plan) setting() plan.Setting {
	return plan.Setting{
		Data: p.Data, Context: p.Context, Expert: p.Expert, Tensor: p.Tensor, Pipe: p.Pipe, Chunks: p.Chunks, Microbatches: p.Microbatches,
		Schedule: p.Schedule, Recompute: p.Recompute, States: p.States,
	}
}

// A Figure is how fast a step was.
type Figure struct {
	Step     float64 `toml:"step_s"`
	TFLOPs   float64 `toml:"tflops"` // of each device
	MFU      float64 `toml:"mfu"`
	GPUHours float64 `toml:"gpu_hours"` // of a trillion tokens
	Days300B float64 `toml:"days_300b"` // of 300 billion tokens
	FLOP     string  `toml:"flop"`      // the formula by which the authors count
}

// Parse reads and checks a file of published steps.
func Parse(name string, text []byte) (*Set, error) {
	var s Set
	d := toml.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		var strict *toml.StrictMissingError
		var wrong *toml.DecodeError
		switch {
		case errors.As(err, &strict):
			return nil, fmt.Errorf("%s: unknown field:\n%s", name, strict.String())
		case errors.As(err, &wrong):
			return nil, fmt.Errorf("%s:\n%s", name, wrong.String())
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.clusters = map[string]*machine.Machine{}
	for key, spec := range s.Clusters {
		m, err := spec.Build(key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.clusters[key] = m
	}
	if len(s.Runs) == 0 {
		return nil, fmt.Errorf("%s: it has no [[run]]", name)
	}
	seen := map[string]bool{}
	for i, r := range s.Runs {
		err := s.check(r)
		if err == nil && seen[r.Name] {
			err = errors.New("the name stands twice")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: run %d (%s): %w", name, i+1, r.Name, err)
		}
		seen[r.Name] = true
	}
	return &s, nil
}

// machine is the cluster of a run; nil where there is none of its name.
func (s *Set) machine(r Run) *machine.Machine {
	if m := s.clusters[r.Cluster]; m != nil {
		return m
	}
	m, _ := machine.Lookup(r.Cluster)
	return m
}

// text is the training step of a run.
func (s *Set) text(r Run) (string, error) {
	m, ok := s.Models[r.Model]
	if !ok {
		return "", fmt.Errorf("there is no [models.%s]", r.Model)
	}
	c := m.Config
	c.Batch = r.Batch
	switch m.Family {
	case "gpt":
		return models.GPT(c)
	case "llama":
		return models.Llama(c)
	case "palm":
		return models.PaLM(c)
	case "mixture":
		return models.Mixture(c, m.Mixture)
	}
	return "", fmt.Errorf("family %q; want gpt, llama, palm or mixture", m.Family)
}

func (s *Set) check(r Run) error {
	if r.Name == "" || r.Source == "" || r.Checked == "" {
		return errors.New("name, source and checked must be stated")
	}
	m := s.machine(r)
	switch {
	case m == nil:
		return fmt.Errorf("there is no cluster %q; known: %s", r.Cluster, strings.Join(machine.Names(), ", "))
	case len(m.Links) == 0:
		return fmt.Errorf("%s has no links between devices; name a cluster", r.Cluster)
	case r.Devices < 1:
		return fmt.Errorf("%d devices", r.Devices)
	}
	if _, err := s.text(r); err != nil {
		return fmt.Errorf("model %s: %w", r.Model, err)
	}
	if err := s.checkPlan(r); err != nil {
		return err
	}
	if err := s.checkFigure(r, r.Figure); err != nil || r.Also == (Figure{}) {
		return err
	}
	return s.checkFigure(r, r.Also)
}

func (s *Set) checkPlan(r Run) error {
	p := r.Plan
	for _, n := range []int{p.Data, p.Context, p.Expert, p.Tensor, p.Pipe, p.Chunks, p.Microbatches} {
		if n < 0 {
			return errors.New("sizes of a plan must not be negative")
		}
	}
	known := func(name, value string, values ...string) error {
		for _, v := range append(values, "") {
			if value == v {
				return nil
			}
		}
		return fmt.Errorf("%s %q; want %s", name, value, strings.Join(values, ", "))
	}
	var schedules []string
	for _, s := range pipelining.Schedules {
		schedules = append(schedules, string(s))
	}
	if err := errors.Join(
		known("schedule", p.Schedule, schedules...),
		known("recompute", p.Recompute, plan.None, plan.Selective, plan.Full),
		known("states", p.States, plan.StatesWhole, plan.StatesSplit, plan.StatesParameters),
	); err != nil {
		return err
	}
	layers := s.Models[r.Model].Layers
	devices := p.Data * max(p.Context, 1) * max(p.Expert, 1) * p.Tensor * p.Pipe
	switch {
	case devices > 0 && devices != r.Devices:
		return fmt.Errorf("data %d × context %d × expert %d × tensor %d × pipe %d is not %d devices", p.Data, max(p.Context, 1), max(p.Expert, 1), p.Tensor, p.Pipe, r.Devices)
	case p.Pipe == 1 && (p.Schedule != "" || p.Chunks > 1):
		return errors.New("a plan without a pipeline has no schedule and no chunks")
	case p.Pipe*max(p.Chunks, 1) > layers:
		return fmt.Errorf("%d stages of %d layers", p.Pipe*max(p.Chunks, 1), layers)
	case p.Data > 0 && r.Batch%(p.Data*max(p.Microbatches, 1)) != 0:
		return fmt.Errorf("a batch of %d is not evenly divided over data %d and %d micro-batches", r.Batch, p.Data, max(p.Microbatches, 1))
	}
	return nil
}

// checkFigure checks that one figure is stated, and the formula that belongs to it.
func (s *Set) checkFigure(r Run, f Figure) error {
	stated := 0
	for _, x := range []float64{f.Step, f.TFLOPs, f.MFU, f.GPUHours, f.Days300B} {
		if !(x >= 0) {
			return fmt.Errorf("the figure %v is negative", x)
		}
		if x > 0 {
			stated++
		}
	}
	rated := f.TFLOPs > 0 || f.MFU > 0
	switch {
	case stated != 1:
		return errors.New("state one of step_s, tflops, mfu, gpu_hours and days_300b")
	case f.MFU > 1:
		return fmt.Errorf("mfu is %v; it is at most 1", f.MFU)
	case rated && formulas[f.FLOP] == nil:
		return fmt.Errorf("flop %q; want megatron, megatron-model or palm", f.FLOP)
	case !rated && f.FLOP != "":
		return errors.New("flop belongs to tflops and mfu")
	case f.FLOP == "palm" && s.Models[r.Model].Family == "mixture":
		return errors.New("the formula palm counts all parameters, of which a mixture uses some")
	}
	return nil
}

// formulas are how authors count the FLOP of a step, from the hyperparameters and the number of parameters.
var formulas = map[string]func(c models.Config, parameters float64) float64{
	"megatron": func(c models.Config, _ float64) float64 {
		return 96 * layers(c) * (1 + seq(c)/(6*hid(c)) + voc(c)/(16*float64(c.Layers)*hid(c)))
	},
	"megatron-model": func(c models.Config, _ float64) float64 {
		return 72 * layers(c) * (1 + seq(c)/(6*hid(c)) + voc(c)/(12*float64(c.Layers)*hid(c)))
	},
	"palm": func(c models.Config, parameters float64) float64 {
		size := c.HeadSize
		if size == 0 {
			size = c.Hidden / c.Heads
		}
		return float64(c.Batch) * seq(c) * (6*parameters + 12*float64(c.Layers)*float64(c.Heads)*float64(size)*seq(c))
	},
}

// products is the FLOP of the products with matrices of parameters in a step, three for each: 6 FLOP for each
// parameter of such a matrix and each token. 0: of a mixture it is not known.
func (s *Set) products(r Run, parameters float64) float64 {
	m := s.Models[r.Model]
	c := m.Config
	switch m.Family {
	case "mixture":
		return 0
	case "gpt":
		parameters -= seq(c) * hid(c) // positions
	}
	parameters *= 0.999 // scales and biases
	if !c.Tied && m.Family != "palm" {
		parameters -= voc(c) * hid(c) // the embedding
	}
	return 6 * parameters * float64(r.Batch) * seq(c)
}

// layers is B·s·l·h².
func layers(c models.Config) float64 {
	return float64(c.Batch) * seq(c) * float64(c.Layers) * hid(c) * hid(c)
}

func seq(c models.Config) float64 { return float64(c.Sequence) }
func hid(c models.Config) float64 { return float64(c.Hidden) }
func voc(c models.Config) float64 { return float64(c.Vocabulary) }

// seconds is the time of a step of r on machine m by a figure.
func (s *Set) seconds(r Run, f Figure, m *machine.Machine, parameters float64) float64 {
	c := s.Models[r.Model].Config
	c.Batch = r.Batch
	tokens := float64(c.Batch) * seq(c)
	switch {
	case f.Step > 0:
		return f.Step
	case f.GPUHours > 0:
		return f.GPUHours * 3600 / 1e12 * tokens / float64(r.Devices)
	case f.Days300B > 0:
		return f.Days300B * 24 * 3600 / 300e9 * tokens
	}
	rate := f.TFLOPs * 1e12
	if f.MFU > 0 {
		rate = f.MFU * m.Peak(true, types.BF16)
	}
	return formulas[f.FLOP](c, parameters) / (rate * float64(r.Devices))
}
