// Package weights takes the elements of an imported program's constants out of its text:
// they are arrays in a .npz file beside it.
package weights

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dmir/base/escape"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// maxListed is how many elements a constant has at most that stays in the text.
const maxListed = 16

// Path is the file with the large constants of the program at a path.
func Path(program string) string {
	return strings.TrimSuffix(program, filepath.Ext(program)) + ".weights.npz"
}

// Set are the arrays of one file.
type Set struct {
	Arrays []Array
	byName map[string]*types.Dense
	taken  map[string]int // names, and how often they were asked for
}

// Array is what a constant was.
type Array struct {
	Name  string
	Value *types.Dense
}

// Place lets the constants of ms with many elements name arrays in the file called
// path, which the set then has; where path is "" it puts all elements into the constants.
// The arrays have the names of the values; of equal ones later ones have a number behind.
func Place(ms []*ir.Module, path string) (*Set, error) {
	s := &Set{byName: map[string]*types.Dense{}, taken: map[string]int{}}
	var failed error
	for _, m := range ms {
		ir.Walk(m.Ops, func(o *ir.Op) bool {
			d, ok := o.Attr("value").(*types.Dense)
			switch {
			case o.Name == op.Func && path != "":
				s.initial(o, path)
			case !ok || o.Name != op.Constant:
			case path == "":
				d, err := d.Inline()
				if err != nil {
					failed = err
					return false
				}
				o.SetAttr("value", d)
			case large(d):
				name := strings.TrimPrefix(o.Results[0].Name, "%")
				if name == "" || name[0] >= '0' && name[0] <= '9' {
					name = "constant" + name
				}
				name = s.add(name, d)
				o.SetAttr("value", types.InFile(d.Type, &types.File{Path: path, Name: name, Arrays: s}))
			}
			return true
		})
	}
	return s, failed
}

// initial lets the arguments of the function f that begin with an array name one of the set. It is called as the result
// that is the argument's next value.
func (s *Set) initial(f *ir.Op, path string) {
	own, _ := f.Attr("arg_attrs").(types.Array)
	names := map[int]string{}
	for i, arg := range op.State(f) {
		name, _ := op.SignatureAttr(f, "res_attrs", i, op.NameAttr).(types.Str)
		names[arg] = string(name)
	}
	for i := range own {
		d := op.InitialArray(f, i)
		if d == nil {
			continue
		}
		name := s.add(escape.FileName(names[i]), d)
		changed := slices.Clone(own[i].(types.Dict))
		for k := range changed {
			if changed[k].Name == op.InitAttr {
				changed[k].Value = types.InFile(d.Type, &types.File{Path: path, Name: name, Arrays: s})
			}
		}
		own[i] = changed
	}
}

func large(d *types.Dense) bool {
	n, _ := d.Type.Elements().Int()
	return n > maxListed && !d.Splat
}

// add gives d a name.
func (s *Set) add(name string, d *types.Dense) string {
	unique := name
	for s.byName[unique] != nil {
		s.taken[name]++
		unique = name + "_" + strconv.Itoa(s.taken[name])
	}
	s.byName[unique] = d
	s.Arrays = append(s.Arrays, Array{unique, d})
	return unique
}

// Find is an error unless the set has f.
func (s *Set) Find(f *types.File, t *types.Tensor) error {
	_, err := s.get(f, t)
	return err
}

// Bytes are the elements of f.
func (s *Set) Bytes(f *types.File, t *types.Tensor) ([]byte, error) {
	d, err := s.get(f, t)
	if err != nil {
		return nil, err
	}
	return d.All()
}

// Map is Bytes where they are in a file.
func (s *Set) Map(f *types.File, t *types.Tensor) ([]byte, error) {
	d, err := s.get(f, t)
	if err != nil {
		return nil, err
	}
	return d.Mapped()
}

func (s *Set) get(f *types.File, t *types.Tensor) (*types.Dense, error) {
	d := s.byName[f.Name]
	switch {
	case d == nil:
		return nil, fmt.Errorf("the model has no constant %q", f.Name)
	case d.Type.Elem != t.Elem || !d.Type.Bytes().Equal(t.Bytes()):
		return nil, &types.Error{Code: types.OtherArray, Msg: fmt.Sprintf("%s has the type %s", f, d.Type)}
	}
	return d, nil
}
