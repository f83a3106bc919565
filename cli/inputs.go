package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"dmir/base/escape"
	"dmir/compile/checkpoint"
	"dmir/compile/driver"
	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// argument is an argument of what is run.
type argument struct {
	name, typ string // without "%"
	of        string // the sparse tensor that it stores a part of; "": none
	drawn     bool   // the text says how its numbers are drawn, or which one they all are
	elem      types.Elem
	shape     []int
	err       error // why it has no element type and shape
}

// byName are values given by the number of their argument, by its name.
func byName(args []argument, given map[int]*tensor.Tensor) map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	for i, t := range given {
		out[args[i].name] = t
	}
	return out
}

// inputs reads the files that --input names for the arguments of a function, and
// returns the values by the number of the argument, and for files by device what reads them. series, which may be nil, takes
// the files that hold values for several steps.
func (c runCmd) inputs(fn string, args []argument, series func(index int, path string) (taken bool, err error)) (given map[int]*tensor.Tensor, pieces map[int]driver.PieceReader, err error) {
	var names []string
	for _, arg := range args {
		names = append(names, arg.name)
	}
	paths, err := c.inputPaths(fn, names)
	if err != nil {
		return nil, nil, err
	}
	given, pieces = map[int]*tensor.Tensor{}, map[int]driver.PieceReader{}
	if err := give(c.matrices, c.sparse, given); err != nil {
		return nil, nil, err
	}
	for _, in := range paths {
		if strings.Contains(in.path, devicePlace) {
			pieces[in.index] = pieceReader(in.path, args[in.index])
			continue
		}
		if series != nil {
			if taken, err := series(in.index, in.path); err != nil {
				return nil, nil, err
			} else if taken {
				continue
			}
		}
		if given[in.index], err = readTensor(in.path, args[in.index]); err != nil {
			return nil, nil, err
		}
	}
	return given, pieces, nil
}

// inputPath is one --input.
type inputPath struct {
	path  string
	index int // of the argument
}

// inputPaths are the files that --input names for the arguments called names, one
// for each member of a tuple.
func (c runCmd) inputPaths(fn string, names []string) ([]inputPath, error) {
	var out []inputPath
	taken := map[string]bool{}
	for _, in := range c.Input {
		name, path, ok := strings.Cut(in, "=")
		name = strings.TrimPrefix(name, "%")
		flag := "--input " + in
		if slices.ContainsFunc(c.matrices, func(m matrix) bool { return m.arg == name }) {
			continue
		}
		if !ok || path == "" {
			return nil, &failure{"DM607", flag, "is not name=file.npy", "write --input x=file.npy"}
		}
		index := -1
		for i, n := range names {
			if n == name {
				index = i
			}
		}
		if index < 0 {
			if members, err := memberPaths(flag, name, path, names); err != nil || len(members) > 0 {
				if err != nil {
					return nil, err
				}
				out = append(out, members...)
				continue
			}
			return nil, &failure{"DM607", flag, fmt.Sprintf("@%s has no argument %%%s", fn, name), "its arguments are " + strings.Join(names, ", ")}
		}
		if taken[name] {
			return nil, &failure{"DM607", flag, "gives %" + name + " a second time", "give each argument once"}
		}
		taken[name] = true
		if i := slices.IndexFunc(c.matrices, func(m matrix) bool { return strings.HasPrefix(name, m.arg+".") }); i >= 0 {
			return nil, &failure{"DM607", flag, "gives a component of %" + c.matrices[i].arg + ", which is given as a whole", "give one of them"}
		}
		out = append(out, inputPath{path, index})
	}
	return out, nil
}

// complexPart is which part of complex numbers the argument called name holds, as importers
// call it: 0 for NAME.re, 1 for NAME.im; -1 for others.
func complexPart(name string) int {
	switch {
	case strings.HasSuffix(name, ".re"):
		return 0
	case strings.HasSuffix(name, ".im"):
		return 1
	}
	return -1
}

// memberPaths are the files for the members of the tuple called name, none where it
// is none: the arrays of an archive that have the members' names. The two parts of complex
// numbers are those of one array.
func memberPaths(flag, name, path string, names []string) (out []inputPath, err error) {
	for i, n := range names {
		if strings.HasPrefix(n, name+".") {
			out = append(out, inputPath{path, i})
		}
	}
	if len(out) == 2 && complexPart(names[out[0].index]) == 0 && complexPart(names[out[1].index]) == 1 {
		return out, nil
	}
	if len(out) > 0 && !strings.HasSuffix(path, ".npz") {
		return nil, &failure{"DM607", flag, "gives one array to %" + name + ", which is a tuple", "write --input " + name + "=FILE.npz, with the arrays " + name + ".0 and so on, or give each member: --input " + name + ".0=FILE.npy"}
	}
	return out, nil
}

// dataInput is an argument with another value in each step.
type dataInput struct {
	name   string
	index  int
	series *tensor.Series
	order  *tensor.Sampler
}

type dataSet []dataInput

func (d dataSet) close() {
	for _, in := range d {
		in.series.Close()
	}
}

// stepInputs opens the files of the inputs: given are the values of those that
// are the same in each step.
func (c runCmd) stepInputs(s *stepped) (data dataSet, given map[int]*tensor.Tensor, err error) {
	given, s.pieces, err = c.inputs(s.name, s.args, func(index int, path string) (taken bool, err error) {
		if s.args[index].err != nil || slices.Contains(s.state, index) || strings.Contains(path, ".npz") {
			return false, nil
		}
		arg := s.args[index]
		series, whole, err := openSeries(path, arg)
		if err != nil || whole {
			return false, err
		}
		data = append(data, dataInput{arg.name, index, series, &tensor.Sampler{Samples: series.Samples, Batch: series.Batch, Shuffle: c.Shuffle, Seed: c.Seed}})
		return true, nil
	})
	if err != nil {
		return data, given, err
	}
	if len(data) == 0 && c.Shuffle {
		return data, nil, &failure{"DM612", "--shuffle", "no input has several samples", "give one with --input x=FILE.npy, whose array has one more dimension or a longer first one"}
	}
	return data, given, c.paired(data, s.args)
}

// paired checks that the inputs have equally many samples, of which a step takes those of the same numbers. A scalar
// with a value for each step, such as a learning rate, is no sample, and may have any number of values.
func (c runCmd) paired(data dataSet, args []argument) error {
	var one *dataInput
	for i := range data {
		in := &data[i]
		if len(args[in.index].shape) == 0 && !c.Shuffle {
			continue
		}
		if one == nil {
			one = in
			continue
		}
		a, b := one.series, in.series
		flag, help := "--input "+in.name, "a step takes the samples of the same numbers of all inputs: give them equally many"
		fits := a.Samples/a.Batch == b.Samples/b.Batch && (a.Batch != b.Batch || a.Samples == b.Samples)
		if c.Shuffle {
			flag, help = "--shuffle", "inputs are shuffled together: give them equally many samples"
			fits = a.Samples == b.Samples && a.Batch == b.Batch
		}
		if !fits {
			return &failure{"DM607", flag, fmt.Sprintf("%%%s has %d samples, %d a step, but %%%s has %d, %d a step", in.name, b.Samples, b.Batch, one.name, a.Samples, a.Batch), help}
		}
	}
	return nil
}

// tellRandom names on stderr the arguments that get random numbers by default: no input gives them, and the program
// does not say how they are drawn.
func (c runCmd) tellRandom(a *app, args []argument, known func(i int) bool) {
	const most = 12
	var names []string
	for i, arg := range args {
		if arg.drawn || known(i) {
			continue
		}
		if arg.of != "" {
			arg.name = arg.of
		}
		if name := "%" + arg.name; len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	if len(names) == 0 || c.rank > 0 {
		return
	}
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("and %d more", more))
	}
	escape.Fprintf(a.stderr, "random: %s\n", strings.Join(names, ", "))
}

// openSeries opens a .npy file for an argument; whole if it holds one value.
func openSeries(path string, arg argument) (s *tensor.Series, whole bool, err error) {
	s, whole, err = tensor.OpenSeries(path, arg.elem, arg.shape)
	var missing *os.PathError
	switch {
	case errors.As(err, &missing):
		return nil, false, cannotRead(path, err)
	case err != nil:
		return nil, false, &failure{"DM607", path, strings.TrimPrefix(err.Error(), path+": "), fmt.Sprintf("%%%s has type %s; a file for several steps has one more dimension in front, or a longer first one", arg.name, arg.typ)}
	}
	return s, whole, nil
}

// value is the input in a step.
func (in dataInput) value(step int) (*tensor.Tensor, error) {
	t, err := in.series.Read(in.order.Step(step))
	if err != nil {
		return nil, &failure{"DM601", "--input " + in.name, err.Error(), "do not change the file while it is read"}
	}
	return t, nil
}

// read adds the values in a step to given.
func (d dataSet) read(step int, given map[int]*tensor.Tensor) (err error) {
	for _, in := range d {
		if given[in.index], err = in.value(step); err != nil {
			return err
		}
	}
	return nil
}

// readArgs sets the values in a step among the arguments.
func (d dataSet) readArgs(step int, args []*tensor.Tensor) (err error) {
	for _, in := range d {
		if args[in.index], err = in.value(step); err != nil {
			return err
		}
	}
	return nil
}

func (d dataSet) describe() []checkpoint.Data {
	var out []checkpoint.Data
	for _, in := range d {
		out = append(out, checkpoint.Data{Name: in.name, Samples: in.series.Samples, Batch: in.series.Batch})
	}
	return out
}
