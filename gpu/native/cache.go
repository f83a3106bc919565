package native

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"dmir/base/local"
	"dmir/base/tally"
)

// cacheLimit is how many bytes of products are kept.
const cacheLimit = 1 << 30

// suffix ends the names of shared objects.
const suffix = ".so"

// product is what clang has made, most often a shared object, in the cache, or in a temporary folder where there is
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

// produce returns the file of a name from the cache, or has fill make it: at
// path, with dir to work in. Without a cache, or one that takes it, it stays in the
// temporary folder.
func produce(ctx context.Context, name string, fill func(dir, path string) error) (made *product, cached bool, err error) {
	defer local.LockFor(name)()
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	dir := cacheDir()
	kept := filepath.Join(dir, name)
	if dir != "" && local.Kept(kept) {
		tally.Kept(tally.Native)
		return &product{path: kept}, true, nil
	}
	tally.Made(tally.Native)
	made, err = fresh(fill)
	if err != nil || dir == "" {
		return made, false, err
	}
	if intoCache(made.path, kept) == nil && local.Kept(kept) {
		made.remove()
		made = &product{path: kept}
	}
	local.Trim(dir, kept, cacheLimit)
	return made, false, nil
}

// fresh makes a product in a temporary folder.
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

// intoCache copies the file made to target, which is in the cache.
func intoCache(made, target string) error {
	from, err := os.Open(made)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.CreateTemp(filepath.Dir(target), local.NewPattern)
	if err != nil {
		return err
	}
	defer os.Remove(to.Name()) // still exists only after an error
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Chmod(0o755), to.Close()); err != nil {
		return err
	}
	return local.Keep(to.Name(), target)
}
