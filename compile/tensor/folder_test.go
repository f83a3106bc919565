package tensor

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dmir/dialect/dim"
	"dmir/dialect/types"
)

// folderOf has w.npz, which numpy.savez writes, z.npz, which is compressed, i.npy, and
// files that are none.
func folderOf(t *testing.T) (string, *Tensor) {
	t.Helper()
	dir := t.TempDir()
	x := Random(types.F32, []int{2, 3}, 1, 0)
	half := Random(types.BF16, []int{4}, 1, 1)
	writeArchive(t, filepath.Join(dir, "w.npz"), map[string]*Tensor{"a/b": x, "half": half, "four": Random(types.I4, []int{3}, 1, 2)})
	var z bytes.Buffer
	w := zip.NewWriter(&z)
	f, err := w.Create("x.npy")
	if err == nil {
		err = errors.Join(WriteNPY(f, x), w.Close(), os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	}
	for name, data := range map[string]string{"sub/z.npz": z.String(), "text.npy": "no array", "text.npz": "no archive", "cut.npz": z.String()[:z.Len()-9]} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644))
	}
	err = errors.Join(err, SaveNPY(filepath.Join(dir, "i.npy"), x), os.Mkdir(filepath.Join(dir, "d.npy"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	return dir, x
}

func tensorType(e types.Elem, shape ...int64) *types.Tensor {
	t := &types.Tensor{Elem: e}
	for _, n := range shape {
		t.Shape = append(t.Shape, dim.Const(n))
	}
	return t
}

// The elements of a constant are those of the array, and what cannot be read is one
// error that Find has as well, without the data.
func TestFolder(t *testing.T) {
	dir, x := folderOf(t)
	if err := os.Symlink(filepath.Join(t.TempDir(), "out.npy"), filepath.Join(dir, "link.npy")); err != nil {
		t.Skip(err)
	}
	two := tensorType(types.F32, 2, 3)
	for _, c := range []struct {
		path, name string
		t          *types.Tensor
		want       string // an error, "" for x
	}{
		{"w.npz", "a/b", two, ""},
		{"sub/z.npz", "x", two, ""},
		{"i.npy", "", two, ""},
		{"w.npz", "half", tensorType(types.BF16, 4), "any"},
		{"w.npz", "four", tensorType(types.I4, 3), "any"},
		{"w.npz", "a/c", two, `w.npz has no array "a/c"; did you mean "a/b"?`},
		{"w.npz", "nothing like it", two, `w.npz has no array "nothing like it"`},
		{"w.npz", "a/b", tensorType(types.F16, 2, 3), "expected tensor<2x3xf16> (float16), got tensor<2x3xfloat32>"},
		{"w.npz", "a/b", tensorType(types.F32, 3, 2), "expected tensor<3x2xf32>"},
		{"none.npz", "a", two, "there is no file none.npz in the program's folder"},
		{"text.npz", "a", two, "text.npz: zip: not a valid zip file"},
		{"cut.npz", "x", two, "cut.npz: zip: not a valid zip file"},
		{"text.npy", "", two, "not a .npy file"},
		{"d.npy", "", two, "d.npy is a directory"},
		{"link.npy", "", two, "path escapes from parent"},
	} {
		t.Run(c.path+" "+c.name, func(t *testing.T) {
			f := &types.File{Path: c.path, Name: c.name, Arrays: In(dir)}
			d := types.InFile(c.t, f)
			found, got := d.Find(), (*Tensor)(nil)
			got, err := Of(d)
			if (found == nil) != (err == nil) {
				t.Fatalf("Find is %v, reading %v", found, err)
			}
			switch c.want {
			case "":
				if err != nil || !bytes.Equal(Pack(got), Pack(x)) {
					t.Errorf("%v: %v, want %v", err, got, x)
				}
			case "any":
				if err != nil {
					t.Error(err)
				}
			default:
				if err == nil || !strings.Contains(err.Error(), c.want) || found.Error() != err.Error() {
					t.Errorf("errors %v and %v, want %q", found, err, c.want)
				}
			}
		})
	}
}

// A file that has changed is read again.
func TestFolderChanges(t *testing.T) {
	dir, x := folderOf(t)
	path := filepath.Join(dir, "w.npz")
	d := types.InFile(tensorType(types.F32, 2, 3), &types.File{Path: "w.npz", Name: "new", Arrays: In(dir)})
	if err := d.Find(); err == nil {
		t.Fatal("an array that is not there is found")
	}
	writeArchive(t, path, map[string]*Tensor{"new": x})
	later := time.Now().Add(time.Hour)
	if err := errors.Join(os.Chtimes(path, later, later), d.Find()); err != nil {
		t.Error(err)
	}
}
