// Package prelude is the CUDA C++ header that every generated kernel includes:
// element types, checked memory, math, warp and block operations, asynchronous
// copies, tensor cores and random numbers in namespace dm. A device compiler
// needs no other header; for a host compiler, with DM_HOST defined, the same names
// are an emulation.
package prelude

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"sync"

	"dmir/gpu/artifact"
)

//go:embed *.cuh
var files embed.FS

// Main is the header that programs include.
const Main = "dm.cuh"

// File is one part of the prelude. Its name is flat: no folders.
type File = artifact.Header

// Files are all parts, in the order of their names. A compiler gets them as
// headers under these names.
func Files() []File { return all().files }

// Hash is a key of the whole text, for caches.
func Hash() string { return all().hash }

// Text is the device's half of [Main] as one header without includes.
func Text() string { return all().text }

type contents struct {
	files []File
	hash  string
	text  string
}

var all = sync.OnceValue(func() contents {
	var c contents
	names, err := fs.Glob(files, "*.cuh")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	sum := sha256.New()
	for _, name := range names {
		b, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the files are in the program
		}
		c.files = append(c.files, File{Name: name, Text: string(b)})
		sum.Write([]byte(name + "\x00" + string(b) + "\x00"))
	}
	c.hash = hex.EncodeToString(sum.Sum(nil))
	c.text, err = Flatten("#include \""+Main+"\"\n", c.files, "")
	if err != nil {
		panic(err) // the test of this package flattens it
	}
	return c
})
