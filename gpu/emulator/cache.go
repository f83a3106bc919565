package emulator

import (
	"os"
	"sync"

	"dmir/base/local"
)

// cacheLimit is how many bytes of compiled programs are kept: those of the tests, a thousand of 330 kB, among them.
const cacheLimit = 512 << 20

// usableCache is the folder of compiled programs if only this user can write to it,
// since its files are executed; else a temporary folder of this process, so that
// programs run without a writable home.
func usableCache() (string, error) {
	if dir, err := local.CacheDir("emulator"); err == nil && local.MakeDir(dir) == nil {
		if f, err := os.CreateTemp(dir, local.NewPattern); err == nil {
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
