package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dmir/internal/atomicfile"
	"dmir/internal/local"
)

// cacheLimit is how many bytes of shared objects are kept.
const cacheLimit = 1 << 30

// suffix ends the names of shared objects, and sums those of their checksums.
const (
	suffix = ".so"
	sums   = ".sum"
)

// product is a shared object in the cache, or in a temporary folder where there is
// none.
type product struct {
	path string
	work *local.Work // nil: it is in the cache
}

func (p *product) remove() {
	if p.work != nil {
		p.work.Remove()
	}
}

// cacheDir is the folder of shared objects; "" where only this user must be able to
// write to it, and that is not so.
func cacheDir() string {
	dir, err := local.CacheDir("native")
	if err == nil {
		dir, err = filepath.Abs(dir) // clang runs elsewhere
	}
	if err != nil || local.MakeDir(dir) != nil {
		return ""
	}
	return dir
}

// making has a lock for each shared object that is being made.
var making sync.Map

// produce returns the shared object of a key from the cache, or has fill make it: at
// path, with dir to work in. Without a cache, or one that takes it, it stays in the
// temporary folder.
func produce(ctx context.Context, key string, fill func(dir, path string) error) (made *product, cached bool, err error) {
	lock, _ := making.LoadOrStore(key, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	dir := cacheDir()
	kept := filepath.Join(dir, key+suffix)
	if dir != "" && inCache(kept) {
		return &product{path: kept}, true, nil
	}
	made, err = fresh(fill)
	if err != nil || dir == "" {
		return made, false, err
	}
	if intoCache(made.path, kept) == nil && inCache(kept) {
		made.remove()
		made = &product{path: kept}
	}
	trim(dir, kept, cacheLimit)
	return made, false, nil
}

// fresh makes a shared object in a temporary folder.
func fresh(fill func(dir, path string) error) (*product, error) {
	work, err := local.NewWork()
	if err != nil {
		return nil, err
	}
	made := &product{filepath.Join(work.Dir, "program"+suffix), work}
	if err := fill(work.Dir, made.path); err != nil {
		made.remove()
		return nil, err
	}
	return made, nil
}

// sumOf is the checksum of a file.
func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// inCache reports whether the file exists with its checksum, and updates its time of
// use. A damaged file, or one that another user can change, does not count.
func inCache(path string) bool {
	if !local.IsOwn(path) || !local.IsOwn(path+sums) {
		return false
	}
	want, err := os.ReadFile(path + sums)
	if err != nil {
		return false
	}
	got, err := sumOf(path)
	if err != nil || got != string(want) {
		return false
	}
	now := time.Now()
	os.Chtimes(path, now, now) // if this fails the file leaves the cache earlier
	return true
}

// intoCache copies the file made to target, with its checksum. Anything at target is
// damaged or not a file.
func intoCache(made, target string) error {
	sum, err := sumOf(made)
	if err != nil {
		return err
	}
	from, err := os.Open(made)
	if err != nil {
		return err
	}
	defer from.Close()
	// There may be a link, a folder, or a file that others may write to.
	for _, path := range []string{target, target + sums} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	err = atomicfile.WriteFile(target, 0o755, func(w io.Writer) error {
		_, err := io.Copy(w, from)
		return err
	})
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(target+sums, 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, sum)
		return err
	})
}

// trim deletes the shared objects that were used longest ago, but for kept, until at
// most limit bytes are left. Files that cannot be read or deleted belong to another
// user and stay.
func trim(dir, kept string, limit int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	type file struct {
		path string
		used time.Time
		size int64
	}
	var files []file
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if strings.HasPrefix(e.Name(), ".dmir-") && time.Since(info.ModTime()) > time.Hour { // left by a process that was killed
			os.Remove(filepath.Join(dir, e.Name()))
		}
		if !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		files = append(files, file{filepath.Join(dir, e.Name()), info.ModTime(), info.Size()})
		total += info.Size()
	}
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if total <= limit {
			return
		}
		if f.path != kept && os.Remove(f.path) == nil {
			os.Remove(f.path + sums)
			total -= f.size
		}
	}
}
