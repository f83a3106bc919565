package types

import (
	"path"
	"strings"

	"dmir/syntax/ast"
	"dmir/syntax/parse"
)

// Arrays gives the elements of literals that are not in the text.
type Arrays interface {
	// Find is an error unless there is an array of type t, and an *Error where its
	// type is another one.
	Find(f *File, t *Tensor) error
	// Bytes are the array's elements, row-major and as devices hold them.
	Bytes(f *File, t *Tensor) ([]byte, error)
}

// A Mapper is Arrays that a process can also look at where they are in a file.
type Mapper interface {
	// Map is Bytes, unread; nil where they cannot be mapped. What is read of a file that has become
	// shorter meanwhile is a fault.
	Map(f *File, t *Tensor) ([]byte, error)
}

// File is #dm.file<"path", "name">, the elements of a literal that are an array in a
// file in NumPy's format.
type File struct {
	Path   string // with slashes, relative to the folder of the program, within which it stays
	Name   string // of the array in a .npz file; "" of a .npy file
	Arrays Arrays // nil: nothing can be read
}

func (f *File) String() string {
	text := "#dm.file<" + parse.Quote(f.Path)
	if f.Name != "" {
		text += ", " + parse.Quote(f.Name)
	}
	return text + ">"
}

// IsFile reports whether x is #dm.file<…>.
func IsFile(x *ast.AttrExpr) bool { return x.Kind == ast.ADialect && x.Name == "dm.file" }

// FileFromExpr reads #dm.file<…>. Errors are *Error.
func FileFromExpr(x *ast.AttrExpr, arrays Arrays) (*File, error) {
	list, err := parse.Attr("[" + x.Body + "]")
	if err != nil || list.Kind != ast.AArray || len(list.Elems) == 0 || len(list.Elems) > 2 {
		return nil, badFile("is not a path and the name of an array")
	}
	var words [2]string
	for i, e := range list.Elems {
		if e.Kind != ast.AString {
			return nil, badFile("is not a path and the name of an array")
		}
		words[i] = e.Str
	}
	f := &File{Path: words[0], Name: words[1], Arrays: arrays}
	if err := f.Check(); err != nil {
		return nil, err
	}
	return f, nil
}

// Check is an error, an *Error, unless f names an array in the folder of the program.
func (f *File) Check() error {
	switch ext := path.Ext(f.Path); {
	case strings.Contains(f.Path, `\`) || strings.ContainsRune(f.Path, 0):
		return badFile("has a path with a character that paths cannot have here; folders are separated by /")
	case !isLocal(f.Path):
		return badFile("has a path that leaves the folder of the program")
	case ext != ".npy" && ext != ".npz":
		return badFile("names no .npz or .npy file")
	case ext == ".npz" && f.Name == "":
		return badFile("names no array in the .npz file")
	case ext == ".npy" && f.Name != "":
		return badFile("names an array in a .npy file, which has one only")
	}
	return nil
}

// isLocal is filepath.IsLocal for paths with slashes, the same on every system.
func isLocal(p string) bool {
	clean := path.Clean(p)
	return p != "" && !path.IsAbs(p) && clean != ".." && !strings.HasPrefix(clean, "../") && !strings.Contains(p, ":")
}

func badFile(msg string) *Error { return &Error{Code: "DM157", Msg: "#dm.file<…> " + msg} }

// InFile is the literal of type t whose elements f has.
func InFile(t *Tensor, f *File) *Dense {
	return &Dense{Type: t, Elements: Elements{Elem: t.Elem}, file: f}
}

// File is where the elements are, nil where the literal has them. The literal of a
// file has no elements, Len is 0, and is no splat; Inline reads them.
func (d *Dense) File() *File { return d.file }

// Inline is the literal with its elements.
func (d *Dense) Inline() (*Dense, error) {
	switch {
	case d.file == nil:
		return d, nil
	case d.file.Arrays == nil:
		return nil, &Error{Code: MissingArray, Msg: d.file.String() + " cannot be read: the program is in no folder"}
	}
	data, err := d.file.Arrays.Bytes(d.file, d.Type)
	if err != nil {
		return nil, err
	}
	return DenseOf(d.Type, data), nil
}

// Find is an error unless the elements can be read: an *Error where the file has an
// array of another type.
func (d *Dense) Find() error {
	if d.file == nil || d.file.Arrays == nil {
		return nil
	}
	return d.file.Arrays.Find(d.file, d.Type)
}
