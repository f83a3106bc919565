package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"dmir/analysis/program"
	"dmir/base/hostmem"
	"dmir/base/regular"
	"dmir/compile/interp"
	"dmir/compile/sparse"
	"dmir/compile/tensor"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/syntax/source"
)

// sparseArgument is an argument that is a sparse tensor.
type sparseArgument struct {
	name  string // without "%"
	t     *types.Tensor
	first int        // of the arguments that store it
	drawn op.Pattern // of a compiled program
}

// compiledSparse are those of a compiled program. What its file says of them must be what its inputs are.
func compiledSparse(p *artifact.Program, path string) (out []sparseArgument, err error) {
	for _, s := range p.Sparse {
		if s.Result {
			continue
		}
		a := sparseArgument{name: s.Name, first: s.First}
		if a.t, err = sparse.ParseType(s.Type); err == nil {
			err = stores(p, a)
		}
		a.drawn, _ = op.StatedPattern(nil)
		if s.Pattern != nil {
			a.drawn = op.Pattern{Kind: s.Pattern.Kind, Exponent: s.Pattern.Exponent, Width: s.Pattern.Width, Size: s.Pattern.Size}
		}
		if err == nil && !a.drawn.Valid() {
			err = fmt.Errorf("has a pattern that is none")
		}
		if err != nil {
			return nil, &failure{"DM616", path, fmt.Sprintf("its argument %%%s %v", s.Name, err), "compile it again with dmir compile -o FILE.dmx"}
		}
		out = append(out, a)
	}
	return out, nil
}

// stores is an error where inputs of p are not what stores a.
func stores(p *artifact.Program, a sparseArgument) error {
	for k, c := range a.t.Components() {
		n, _ := c.Tensor.Shape[0].Int()
		if i := a.first + k; i < 0 || i >= p.Given() || p.Buffers[p.Inputs[i]].Elem != c.Tensor.Elem.String() || !slices.Equal(p.Buffers[p.Inputs[i]].Shape, []int64{n}) {
			return fmt.Errorf("is no %s", a.t)
		}
	}
	return nil
}

// sparseArguments are those of fn; sizes that bind gives are numbers.
func sparseArguments(fn *ir.Func, bind map[string]int64) []sparseArgument {
	flat, _ := flatten.Func(fn)
	var out []sparseArgument
	for _, g := range interp.SparseArgs(flat) {
		out = append(out, sparseArgument{strings.TrimPrefix(g.Name, "%"), g.Type.Bound(op.Bindings(fn, bind)), g.First, op.Pattern{}})
	}
	return out
}

// matrix is a file that an --input names for a sparse argument.
type matrix struct {
	arg      string // without "%"
	path     string
	elements *sparse.COO
}

// sized reads the files that inputs name for sparse arguments of fn in p, which is src. Sizes that the program leaves open
// are those of the matrices: it is analysed again with them.
func (a *app) sized(src *source.File, opts program.Options, p *program.Program, fn *ir.Func, inputs []string) (*program.Program, []matrix, error) {
	args := sparseArguments(fn, p.Bind)
	matrices, err := readMatrices(inputs, args)
	if err != nil {
		return nil, nil, err
	}
	more, err := sizes(matrices, args)
	if err != nil || len(more) == 0 {
		return p, matrices, err
	}
	bind := maps.Clone(opts.Bind)
	maps.Copy(bind, more)
	opts.Bind = bind
	p, err = a.analyse(src, opts)
	return p, matrices, err
}

// readMatrices reads the files that inputs name for sparse arguments.
func readMatrices(inputs []string, args []sparseArgument) (out []matrix, err error) {
	for _, in := range inputs {
		name, path, ok := strings.Cut(in, "=")
		name = strings.TrimPrefix(name, "%")
		i := slices.IndexFunc(args, func(a sparseArgument) bool { return a.name == name })
		if !ok || path == "" || i < 0 {
			continue // reported with the other inputs
		}
		flag := "--input " + in
		switch {
		case slices.ContainsFunc(out, func(m matrix) bool { return m.arg == name }):
			return nil, &failure{"DM607", flag, "gives %" + name + " a second time", "give each argument once"}
		case strings.Contains(path, devicePlace):
			return nil, &failure{"DM607", flag, "%" + name + " is sparse, and not given by device", "give one file of the whole matrix"}
		}
		c, err := readMatrix(path, args[i])
		if err != nil {
			return nil, err
		}
		if c != nil {
			out = append(out, matrix{name, path, c})
		}
	}
	return out, nil
}

// readMatrix reads a file for a sparse argument: in the Matrix Market format, one that SciPy has written, or a dense
// array, of which the elements that are not 0 are stored. It is nil for an archive that has each component of the
// argument by its name.
func readMatrix(path string, arg sparseArgument) (c *sparse.COO, err error) {
	switch {
	case strings.HasSuffix(path, ".npz"):
		var z *tensor.Archive
		if z, err = tensor.OpenNPZ(path); err == nil {
			defer z.Close()
			if z.Has(arg.name + "." + arg.t.Components()[0].Name) {
				return nil, nil
			}
			c, err = sparse.ReadNPZ(z, arg.t.Elem)
		}
	case strings.HasSuffix(path, ".npy"):
		var x *tensor.Tensor
		if x, err = tensor.LoadNPY(path, arg.t.Elem, slices.Repeat([]int{-1}, arg.t.Rank())); err == nil {
			c = sparse.OfDense(x)
		}
	default:
		c, err = readMarket(path, arg.t.Elem)
	}
	if err != nil {
		return nil, cannotTake(path, err, fmt.Sprintf("%%%s has type %s; it takes a file in the Matrix Market format, one of scipy.sparse.save_npz, or a dense .npy", arg.name, arg.t))
	}
	return c, nil
}

func readMarket(path string, elem types.Elem) (*sparse.COO, error) {
	f, err := regular.OpenNamed(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return sparse.ReadMarket(f, elem)
}

// cannotTake is why the file at path is none for an argument; help is for errors that have none of their own.
func cannotTake(path string, err error, help string) error {
	var missing *fs.PathError
	var bad *sparse.FileError
	switch {
	case errors.As(err, &missing):
		return cannotRead(path, err)
	case errors.As(err, &bad):
		if bad.Help != "" {
			help = bad.Help
		}
		where := path
		if bad.Line > 0 {
			where = fmt.Sprintf("%s:%d", path, bad.Line)
		}
		return &failure{"DM607", where, bad.Msg, help}
	}
	return &failure{"DM607", path, strings.TrimPrefix(err.Error(), path+": "), help}
}

// sizes are those that matrices give to the symbols of their arguments: of the shape, and of how many entries are stored.
func sizes(matrices []matrix, args []sparseArgument) (map[string]int64, error) {
	out := map[string]int64{}
	for _, m := range matrices {
		a := args[slices.IndexFunc(args, func(a sparseArgument) bool { return a.name == m.arg })]
		t := a.t.Bound(out)
		if !interp.Unify(t.Shape, m.elements.Shape, out) {
			return nil, &failure{"DM607", m.path, fmt.Sprintf("expected %s, got a matrix of %s", t, shapeText(m.elements.Shape)), fmt.Sprintf("%%%s has type %s", m.arg, a.t)}
		}
		t = t.Bound(out)
		if _, ok := sparse.Numbers(t.Shape); !ok {
			continue // the program says which size it lacks
		}
		x, err := m.pack(sparse.Open(t))
		if err != nil {
			return nil, err
		}
		stored, _ := sparse.Numbers(x.Type.Format.Stored)
		needed := map[string]int64{} // of a size that several levels have, the largest
		for i, d := range t.Format.Stored {
			one := map[string]int64{}
			if _, known := d.Int(); !known && interp.Unify(t.Format.Stored[i:i+1], []int{int(stored[i])}, one) {
				for s, n := range one {
					needed[s] = max(needed[s], n)
				}
			}
		}
		for s, n := range needed {
			out[s] = n
		}
	}
	return out, nil
}

func shapeText(shape []int) string {
	s := make([]string, len(shape))
	for i, n := range shape {
		s[i] = fmt.Sprint(n)
	}
	return strings.Join(s, " × ")
}

// pack stores m as t.
func (m matrix) pack(t *types.Tensor) (*sparse.Tensor, error) {
	most := make([]int64, len(t.Format.Stored))
	for i := range most {
		if most[i] = int64(m.elements.Len()); t.Format.Stored[i].IsConst() {
			most[i], _ = t.Format.Stored[i].Int()
		}
	}
	if n, ok := sparse.Shaped(t, m.elements.Shape, most).Bytes().Int(); !ok || n > hostmem.Limit()/4*3 {
		return nil, &failure{"DM705", m.path, fmt.Sprintf("does not fit into memory as %s", t), "store it with fewer dense levels: #dm.coo, #dm.dcsr"}
	}
	x, err := sparse.Pack(t, m.elements)
	var bad *sparse.Error
	if errors.As(err, &bad) {
		return nil, &failure{"DM607", m.path, bad.Msg, bad.Help}
	}
	return x, err
}

// give packs the matrices, and adds the components to given, by the number of the argument.
func give(matrices []matrix, args []sparseArgument, given map[int]*tensor.Tensor) error {
	for _, m := range matrices {
		a := args[slices.IndexFunc(args, func(a sparseArgument) bool { return a.name == m.arg })]
		if !interp.Unify(a.t.Shape, m.elements.Shape, map[string]int64{}) {
			return &failure{"DM607", m.path, fmt.Sprintf("expected %s, got a matrix of %s", a.t, shapeText(m.elements.Shape)), fmt.Sprintf("%%%s has type %s", m.arg, a.t)}
		}
		x, err := m.pack(a.t)
		if err != nil {
			return err
		}
		for k, part := range x.Parts {
			given[a.first+k] = part
		}
	}
	return nil
}

// denseMatrix reads a file in the Matrix Market format for a dense argument: a matrix, or a vector of one column.
func denseMatrix(path string, arg argument) (*tensor.Tensor, error) {
	c, err := readMarket(path, arg.elem)
	if err != nil {
		return nil, err
	}
	x, bad := c.Dense()
	if bad != nil {
		return nil, &sparse.FileError{Msg: bad.Msg, Help: bad.Help}
	}
	if len(arg.shape) == 1 && x.Shape[1] == 1 {
		x = x.Reshape(x.Shape[0])
	}
	if !slices.EqualFunc(x.Shape, arg.shape, func(n, want int) bool { return want < 0 || n == want }) {
		return nil, fmt.Errorf("expected %s, got a matrix of %s", arg.typ, shapeText(c.Shape))
	}
	return x, nil
}
