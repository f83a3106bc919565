package rates

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"dmir/analysis/machine"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
)

// card is a GPU whose kernels take what its constants make of their bytes and FLOP.
type card struct {
	launch, dependent, stream, load  float64 // s
	bandwidth, l2, f32, f64, product float64 // per second
	untimed                          string
	faults, ends                     string // the program that does, and the one in which the time is over
	over                             bool
	ran                              map[string]int
}

// deadline is a context whose time is over as the card says.
type deadline struct {
	context.Context
	card *card
}

func (d deadline) Err() error {
	if d.card.over {
		return context.DeadlineExceeded
	}
	return nil
}

func (c *card) Name() string  { return "cuda" }
func (c *card) Title() string { return "NVIDIA \x1b[31mH100\x1b[0m 80GB HBM3" }
func (c *card) Arch() string  { return "sm_90a" }

func (c *card) Run(_ context.Context, p *artifact.Program, in [][]byte, o device.Options) (*device.Result, error) {
	if c.over = c.over || p.Name == c.ends; c.over {
		return nil, context.DeadlineExceeded
	}
	if p.Name == c.faults {
		return nil, errors.New("an illegal memory access")
	}
	if o.Runs == 0 || len(in) != len(p.Inputs) {
		return nil, errors.New("nothing to time")
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if c.ran == nil {
		c.ran = map[string]int{}
	}
	c.ran[p.Name]++
	ns := 9e3 // of a graph's launch
	times := p.Times()
	for i, s := range p.Steps {
		k := p.KernelOf(&s)
		if k == nil {
			continue
		}
		start, work := c.launch, 0.0
		if k.Block.Waits {
			start = c.dependent
		}
		switch p.Name {
		case "loads":
			if !o.Cold {
				return nil, errors.New("the loads lie in a cache")
			}
			work = c.load * float64(strings.Count(p.Source, "dm::min(dm::max("))
		case "rounds":
			if i > 0 && p.Steps[i-1].Kind == artifact.StepLoop { // the host reads what this kernel decides
				start = c.stream
			}
		case "copies":
			work = float64(s.ReadBytes+s.WrittenBytes) / c.bandwidth
		case "reads":
			work = float64(s.ReadBytes) / c.l2
		case "arithmetic":
			rate := c.f32
			if strings.Contains(p.Source, "double") {
				rate = c.f64
			}
			work = max(float64(s.FLOP)/rate, float64(s.ReadBytes+s.WrittenBytes)/c.bandwidth)
		case "products":
			work = float64(s.FLOP) / c.product
		case "attention":
			work = float64(s.FLOP) / (0.7 * c.product)
		case "attention_grad":
			work = float64(s.FLOP) / (0.5 * c.product)
		}
		ns += float64(times[i]) * 1e9 * (start + 2*c.load + work)
	}
	return &device.Result{Elapsed: time.Duration(ns), Untimed: c.untimed}, nil
}

// sheet is a data sheet of a GPU with little memory, so that tests are quick.
func sheet(t *testing.T) *machine.Machine {
	t.Helper()
	m, err := machine.Parse("small", []byte("base = \"h100\"\nmemory = \"64 MiB\"\nl2 = \"512 KiB\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The constants of a card are found from the times of its kernels.
func TestAccelerator(t *testing.T) {
	c := &card{launch: 800e-9, dependent: 350e-9, stream: 2e-6, load: 500e-9, bandwidth: 2.5e12, l2: 5e12, f32: 40e12, f64: 20e12, product: 600e12}
	base := sheet(t)
	var stages []string
	m, err := Accelerator(t.Context(), c, base, "card", func(what string, _, _ int) { stages = append(stages, what) })
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what      string
		got, want float64
	}{
		{"launch", m.Launch, c.launch},
		{"dependent launch", m.Dependent, c.dependent},
		{"stream", m.Stream, c.stream},
		{"load", m.MemoryLatency, c.load},
		{"bandwidth", m.Reach(), c.bandwidth},
		{"level-2 cache", m.L2Bandwidth, c.l2},
		{"f32", m.Rate(false, types.F32, ""), c.f32},
		{"f64", m.Rate(false, types.F64, ""), c.f64},
	} {
		if math.Abs(x.got/x.want-1) > 0.05 {
			t.Errorf("%s: %g, want %g", x.what, x.got, x.want)
		}
	}
	// What the model adds for tiles is part of the rate: it is higher than what kernels reach, and predicts their times.
	if r := m.Rate(true, types.F16, ""); r < c.product || r > m.TensorCore[types.F16] {
		t.Errorf("products at %g, of kernels at %g", r, c.product)
	}
	again := &gpu{ctx: t.Context(), device: c, m: m, random: newRandom()}
	if part, err := again.against("products", "%x: tensor<4096x1024xf16>, %w: tensor<1024x4096xf16>",
		"dm.matmul %x, %w : (tensor<4096x1024xf16>, tensor<1024x4096xf16>) -> tensor<4096x4096xf16>", "tensor<4096x4096xf16>"); err != nil || math.Abs(part-1) > 0.2 {
		t.Errorf("products take %.2f times as long as predicted, %v", 1/part, err)
	}
	if a, b := m.Ceilings.Paths["attention"], m.Ceilings.Paths["attention_grad"]; a <= b || a > 1 {
		t.Errorf("attention reaches %g, its gradient %g", a, b)
	}
	for _, key := range []string{machine.KeyLaunch, machine.KeyDependent, machine.KeyStream, machine.KeyMemoryLatency, machine.KeyL2Bandwidth, machine.KeyBandwidth, machine.CeilingOf(true, types.F16), machine.CeilingOfPath("attention")} {
		if m.Assumed[key] != "" {
			t.Errorf("%s is assumed after %s", key, m.Assumed[key])
		}
	}
	if len(stages) != 7 || c.ran["products"] != 24+2 {
		t.Errorf("stages %q, runs %v", stages, c.ran)
	}
	// It reads as it is written, and the base has not changed.
	read, err := machine.Parse("card", []byte(m.TOML()))
	if err != nil {
		t.Fatalf("%v\n%s", err, m.TOML())
	}
	if math.Abs(read.Launch/m.Launch-1) > 0.01 || math.Abs(read.Dependent/m.Dependent-1) > 0.01 || math.Abs(read.Reach()/m.Reach()-1) > 0.01 || read.Title != m.Title {
		t.Errorf("%+v is read as %+v", m, read)
	}
	if other := sheet(t); base.Launch != other.Launch || base.Ceilings.TensorCore[types.F16] != other.Ceilings.TensorCore[types.F16] || base.Ceilings.Paths["attention"] != other.Ceilings.Paths["attention"] {
		t.Error("the base has changed")
	}
}

// A card that gives no times, and a run that is cancelled, are errors.
func TestAcceleratorFails(t *testing.T) {
	nothing := func(string, int, int) {}
	if _, err := Accelerator(t.Context(), &card{untimed: "the card has no clock"}, sheet(t), "card", nothing); err == nil || err.Error() != "latency of the memory: the card has no clock" {
		t.Errorf("got %v", err)
	}
	base := sheet(t)
	m, err := Accelerator(t.Context(), &card{launch: 2e-6, dependent: 1e-6, stream: 3e-6, load: 1e-7, bandwidth: 1e12, l2: 3e12, f32: 4e13, f64: 2e13, product: 4e14, faults: "products"}, base, "card", nothing)
	if err == nil || err.Error() != "products: an illegal memory access" || m == nil {
		t.Fatalf("%v, %v", m, err)
	}
	if m.Bandwidth != base.Bandwidth || m.Ceilings.Bandwidth == base.Ceilings.Bandwidth || m.Ceilings.TensorCore[types.F16] != base.Ceilings.TensorCore[types.F16] {
		t.Errorf("of the others %+v", m.Ceilings)
	}
	late, end := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	defer end()
	slow := &card{launch: 2e-6, stream: 3e-6, load: 1e-7, bandwidth: 1e12, l2: 3e12, f32: 4e13, f64: 2e13, product: 4e14, ends: "copies"}
	if m, err = Accelerator(deadline{late, slow}, slow, base, "card", nothing); m == nil || err == nil || strings.Count(err.Error(), "deadline exceeded") != 5 || m.Launch == base.Launch {
		t.Errorf("with a deadline %v, %v", m, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Accelerator(ctx, &card{}, sheet(t), "card", nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
