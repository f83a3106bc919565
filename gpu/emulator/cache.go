package emulator

import (
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

// cacheLimit is how many bytes of compiled programs are kept.
const cacheLimit = 256 << 20

// usableCache is the folder of compiled programs if only this user can write to it,
// since its files are executed; else a temporary folder of this process, so that
// programs run without a writable home.
func usableCache() (string, error) {
	if dir, err := local.CacheDir("emulator"); err == nil && local.MakeDir(dir) == nil {
		if f, err := os.CreateTemp(dir, "new-"); err == nil {
			f.Close()
			os.Remove(f.Name())
			return dir, nil
		}
	}
	temporary.Lock()
	defer temporary.Unlock()
	if w := temporary.work; w != nil {
		if _, err := os.Stat(w.Dir); err == nil {
			return w.Dir, nil
		}
	}
	w, err := local.NewWork()
	if err != nil {
		return "", err
	}
	temporary.work = w
	return w.Dir, nil
}

// temporary is the cache of a process that has no other.
var temporary struct {
	sync.Mutex
	work *local.Work
}

// sumName is the file beside an entry of the cache that holds its checksum.
func sumName(path string) string { return path + ".sum" }

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
	if !local.IsOwn(path) || !local.IsOwn(sumName(path)) {
		return false
	}
	want, err := os.ReadFile(sumName(path))
	if err != nil {
		return false
	}
	got, err := sumOf(path)
	if err != nil || got != string(want) {
		return false
	}
	now := time.Now()
	for _, p := range []string{path, sumName(path)} {
		os.Chtimes(p, now, now) // if this fails the file leaves the cache earlier
	}
	return true
}

// intoCache moves the file made to target, with its checksum. Anything at target is
// damaged or not a file.
func intoCache(made, target string) error {
	info, err := os.Stat(made)
	if err != nil {
		return err
	}
	if err := os.Chmod(made, info.Mode().Perm()&^0o022); err != nil {
		return err
	}
	sum, err := sumOf(made)
	if err != nil {
		return err
	}
	// target may be a link, a folder, or a file that others may write to.
	if info, err := os.Lstat(target); err == nil && !info.Mode().IsRegular() {
		if err := os.RemoveAll(target); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(sumName(target)); err != nil {
		return err
	}
	if err := os.Rename(made, target); err != nil {
		return err
	}
	return atomicfile.WriteFile(sumName(target), 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, sum)
		return err
	})
}

// trim deletes the programs that were used longest ago until at most limit bytes
// are left. Files that cannot be read or deleted belong to another user and stay.
func trim(dir string, limit int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	type file struct {
		name string
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
		if strings.HasPrefix(e.Name(), "new-") {
			if time.Since(info.ModTime()) > time.Hour { // left by a process that was killed
				os.Remove(filepath.Join(dir, e.Name()))
			}
			continue
		}
		files = append(files, file{e.Name(), info.ModTime(), info.Size()})
		total += info.Size()
	}
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if total <= limit {
			return
		}
		if os.Remove(filepath.Join(dir, f.name)) == nil {
			total -= f.size
		}
	}
}
