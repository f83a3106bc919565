package cli

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dmir/analysis/config"
	"dmir/analysis/lint"
	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/kernel"
	"dmir/compile/planned"
	"dmir/compile/tensor"
	"dmir/dialect/weights"
	"dmir/syntax/source"
)

// targeting are the flags of every command that computes cost.
type targeting struct {
	Target      string   `complete:"machine" help:"Machine to predict for (default: dmir.toml's target, else h200)." placeholder:"NAME"`
	Bind        []string `help:"Give a dimension symbol its size." placeholder:"n=512" sep:","`
	F32Products string   `name:"f32-products" enum:",f32,tf32" default:"" help:"How products of f32 that state no precision are computed: f32, or tf32, rounded for the tensor cores (default: dmir.toml's f32_products, else f32)." placeholder:"PRECISION"`
}

// options reads the configuration that applies to path; flags override it.
func (t targeting) options(a *app, path string) (program.Options, error) {
	cfg, file, diags := lint.Config(path)
	if hasErrors(diags) {
		printErrors(a.stderr, file, diags)
		return program.Options{}, exitStatus(exitFailed)
	}
	name := t.Target
	if name == "" {
		name = cfg.Target
	}
	target, ok := cfg.Machine(name)
	if !ok {
		return program.Options{}, unknownTarget(name, cfg)
	}
	bind := map[string]int64{}
	maps.Copy(bind, cfg.Bind)
	sizes, err := binding(t.Bind)
	if err != nil {
		return program.Options{}, err
	}
	maps.Copy(bind, sizes)
	return program.Options{Target: target, Bind: bind, F32Products: t.F32Products, Config: cfg, Arrays: tensor.In(filepath.Dir(path)), OneKernel: kernel.Unfit, Compiled: planned.Figures}, nil
}

// binding reads sizes of symbols, each as name=size.
func binding(list []string) (map[string]int64, error) {
	bind := map[string]int64{}
	for _, b := range list {
		sym, size, ok := strings.Cut(b, "=")
		n, err := strconv.ParseInt(size, 10, 64)
		if !ok || sym == "" || err != nil || n < 0 {
			return nil, &failure{"DM605", "--bind " + b, "is not name=size", "write --bind n=512"}
		}
		bind[strings.TrimSpace(sym)] = n
	}
	return bind, nil
}

func unknownTarget(name string, cfg *config.Config) error {
	if machine.IsLocal(name) {
		return unknownLocal(name)
	}
	return &failure{"DM604", "--target " + name, fmt.Sprintf("%q is not a known machine", name), cfg.Meant(name)}
}

// load reads and checks the program at path. A program with errors is
// reported, and an error.
func (t *targeting) load(a *app, path string) (*program.Program, error) {
	src, opts, err := t.program(a, path)
	if err != nil {
		return nil, err
	}
	return t.checked(a, src, opts)
}

// checked is the program of src. One with errors is reported, and an error.
func (t *targeting) checked(a *app, src *source.File, opts program.Options) (*program.Program, error) {
	p, err := a.analyse(src, opts)
	if err != nil {
		return nil, err
	}
	if p.HasErrors() {
		printErrors(a.stderr, src, p.Diags)
		return nil, exitStatus(exitFailed)
	}
	return p, nil
}

// bound returns an error for sizes that the command line binds to symbols that no
// program has. Programs with errors may have more symbols than can be read.
func (t targeting) bound(programs ...*program.Program) error {
	var have []string
	for _, p := range programs {
		if p.HasErrors() {
			return nil
		}
		have = append(have, p.Symbols()...)
	}
	slices.Sort(have)
	have = slices.Compact(have)
	return unknownSize(t.Bind, have)
}

// unknownSize is the error for the first size in list, each as name=size, that is none
// of those that a program has.
func unknownSize(list, have []string) error {
	for _, b := range list {
		name, _, _ := strings.Cut(b, "=")
		if name = strings.TrimSpace(name); slices.Contains(have, name) {
			continue
		}
		help := "none of its sizes is a symbol: remove --bind"
		if len(have) > 0 {
			help = suggested(name, have, "its symbols are "+strings.Join(have, ", "))
		}
		return &failure{"DM605", "--bind " + b, fmt.Sprintf("the program has no symbol %q", name), help}
	}
	return nil
}

// program is the text at path, and the options that apply to it; of a model in ONNX the text that dmir import makes of it, of the
// description of a trace its program's. Sizes that a model leaves open are those of --bind, which the program then has no longer.
func (t *targeting) program(a *app, path string) (*source.File, program.Options, error) {
	opts, err := t.options(a, path)
	if err != nil {
		return nil, opts, err
	}
	data, name, err := a.bytes(path)
	if err != nil {
		return nil, opts, err
	}
	description, err := a.trace(path)
	if err != nil {
		return nil, opts, err
	}
	spec, err := specOf(description)
	if err != nil {
		return nil, opts, &failure{"DM625", path, err.Error(), "trace the program again"}
	}
	program := strings.TrimSuffix(name, filepath.Ext(name)) + ".dmir"
	if !isModel(name, data) {
		src, err := text(name, data)
		if err != nil || spec == nil {
			return src, opts, err
		}
		text, open, _, err := a.trainedProgram(src, opts, "", spec, locations(true)...)
		if err != nil {
			return nil, opts, err
		}
		t.unbind(&opts, open)
		return source.New(program, text), opts, nil
	}
	beside := filepath.Base(weights.Path(program))
	var text string
	var open []string
	var arrays *weights.Set
	if spec != nil {
		text, open, arrays, err = a.trained(name, data, opts.Bind, beside, true, spec)
	} else {
		text, open, arrays, err = a.model(name, data, opts.Bind, beside, true)
	}
	if err != nil {
		return nil, opts, err
	}
	t.unbind(&opts, open)
	opts.Arrays = arrays
	return source.New(program, text), opts, nil
}

// unbind takes back the sizes that a program left open, which the text that was made of it has no longer.
func (t *targeting) unbind(opts *program.Options, open []string) {
	t.Bind = slices.DeleteFunc(slices.Clone(t.Bind), func(b string) bool {
		size, _, _ := strings.Cut(b, "=")
		return slices.Contains(open, strings.TrimSpace(size))
	})
	for _, size := range open {
		delete(opts.Bind, size)
	}
}
