// Package prelude is the CUDA C++ header that every generated kernel includes:
// element types, checked memory, math, warp and block operations, asynchronous
// copies, tensor cores and random numbers in namespace dm. A device compiler
// needs no header beside it; a host compiler takes the same names, with DM_HOST
// defined, as an emulation.
package prelude

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"strings"
	"sync"
)

//go:embed *.cuh
var files embed.FS

// Main is the header that programs include.
const Main = "dm.cuh"

// File is one part of the prelude.
type File struct {
	Name string // flat: no folders
	Text string
}

// Files are all parts, in the order of their names. A compiler gets them as
// headers under these names.
func Files() []File { return all().files }

// Hash is a key of the whole text, for caches.
func Hash() string { return all().hash }

// Text is the device's half of [Main] as one header without includes.
func Text() string { return Flatten("#include \"" + Main + "\"\n") }

// Flatten is a program with the device's half of the prelude in the place of
// its includes, so that it compiles alone. Lines under #ifdef DM_HOST go; an
// include of what is no part of the prelude stays.
func Flatten(program string) string {
	var b strings.Builder
	flatten(&b, program, all().byName, map[string]bool{})
	return b.String()
}

type contents struct {
	files  []File
	byName map[string]string
	hash   string
}

var all = sync.OnceValue(func() contents {
	c := contents{byName: map[string]string{}}
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
		text := string(b)
		c.files = append(c.files, File{Name: name, Text: text})
		c.byName[name] = text
		sum.Write([]byte(name + "\x00" + text + "\x00"))
	}
	c.hash = hex.EncodeToString(sum.Sum(nil))
	return c
})

// flatten writes text with its includes in their places, each once.
func flatten(b *strings.Builder, text string, files map[string]string, done map[string]bool) {
	type branch struct {
		host bool // of a test of DM_HOST: its lines go
		skip bool // now in the branch for the host
	}
	var open []branch
	skipping := func() bool {
		for _, br := range open {
			if br.skip {
				return true
			}
		}
		return false
	}
	for line := range strings.Lines(text) {
		word := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(word, "#if"):
			br := branch{host: word == "#ifdef DM_HOST" || word == "#ifndef DM_HOST", skip: word == "#ifdef DM_HOST"}
			open = append(open, br)
			if br.host {
				continue
			}
		case strings.HasPrefix(word, "#else") && len(open) > 0:
			if top := &open[len(open)-1]; top.host {
				top.skip = !top.skip
				continue
			}
		case strings.HasPrefix(word, "#endif") && len(open) > 0:
			top := open[len(open)-1]
			open = open[:len(open)-1]
			if top.host {
				continue
			}
		}
		if skipping() || word == "#pragma once" {
			continue
		}
		if rest, ok := strings.CutPrefix(word, `#include "`); ok {
			name, _, _ := strings.Cut(rest, `"`)
			if part, ok := files[name]; ok {
				if !done[name] {
					done[name] = true
					flatten(b, part, files, done)
				}
				continue
			}
		}
		b.WriteString(line)
	}
}
