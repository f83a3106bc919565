// Package scan looks through the folders of a workspace: which programs lie
// there, and what they define. It does not use the protocol.
package scan

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// File is a program on disk. Two of the same path and stamp hold the same text,
// as far as the file system reports.
type File struct {
	Path  string
	Stamp Stamp
}

// Stamp identifies a version of a file.
type Stamp struct {
	Size     int64
	Modified time.Time
}

// StampOf is the stamp of the file at path, the zero Stamp where there is none.
func StampOf(path string) Stamp {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return Stamp{info.Size(), info.ModTime()}
	}
	return Stamp{}
}

// maxFiles bounds a sweep: a folder of more programs is no workspace, but a
// disk that was opened by mistake.
const maxFiles = 20000

var errEnough = errors.New("enough files")

// Files are the programs in and below folders, each once, by path: those that
// dmir lint finds there. Hidden folders and node_modules are left out, what
// cannot be read is passed over.
func Files(ctx context.Context, folders []string) []File {
	seen := map[string]bool{}
	var out []File
	for _, root := range folders {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case len(out) == maxFiles:
				return errEnough
			case err != nil:
				if d != nil && d.IsDir() {
					return filepath.SkipDir
				}
				return nil
			case d.IsDir():
				if path != root && (seen[path] || strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
					return filepath.SkipDir
				}
				seen[path] = true
				return nil
			case !d.Type().IsRegular() || !strings.HasSuffix(path, ".dmir") || seen[path]:
				return nil
			}
			if info, err := d.Info(); err == nil {
				seen[path] = true
				out = append(out, File{path, Stamp{info.Size(), info.ModTime()}})
			}
			return nil
		})
		if err != nil {
			break
		}
	}
	slices.SortFunc(out, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// Each calls do for each file, from half as many goroutines as there are
// processors, so that the editor keeps the other half. It returns when
// all are done, or, when ctx ends, when those begun are.
func Each(ctx context.Context, files []File, do func(File)) {
	next := make(chan File)
	var working sync.WaitGroup
	for range min(len(files), max(1, runtime.GOMAXPROCS(0)/2)) {
		working.Go(func() {
			for f := range next {
				do(f)
			}
		})
	}
	for _, f := range files {
		if ctx.Err() != nil {
			break
		}
		next <- f
	}
	close(next)
	working.Wait()
}
