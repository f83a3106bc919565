package emulator

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// cacheLimit is how many bytes of compiled programs are kept.
const cacheLimit = 256 << 20

// cacheDir is the folder of compiled programs: emulator in the folder that the
// environment variable DMIR_CACHE names, else in dmir's part of the user's
// cache. What it holds may be deleted at any time.
func cacheDir() (string, error) {
	if dir := os.Getenv("DMIR_CACHE"); dir != "" {
		return filepath.Join(dir, "emulator"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "dmir", "emulator"), nil
}

// usableCache is cacheDir where files can be written there, else a temporary
// folder of this process: without a home to write to, programs still run.
func usableCache() (string, error) {
	if dir, err := cacheDir(); err == nil && os.MkdirAll(dir, 0o755) == nil {
		if f, err := os.CreateTemp(dir, "new-"); err == nil {
			f.Close()
			os.Remove(f.Name())
			return dir, nil
		}
	}
	return temporary()
}

// temporary has no fixed name: what it holds is run, and others can write to
// where it lies.
var temporary = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "dmir-emulator-") })

// trim deletes the programs that were used longest ago until at most limit bytes
// are left. Files that cannot be read or deleted are somebody else's: they stay.
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
		if strings.HasPrefix(e.Name(), "new-") && time.Since(info.ModTime()) < time.Hour {
			continue // being written
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
