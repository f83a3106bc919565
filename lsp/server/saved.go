package server

import (
	"hash/maphash"
	"os"
	"sync"
	"time"

	"dmir/base/regular"
	"dmir/lsp/session"
)

// saved records whether a document differs from its file on disk, which is read
// only when it has changed.
type saved struct {
	mu    sync.Mutex
	files map[string]savedFile // by path
}

// savedFile is what is remembered of a file: enough to compare a text with it.
type savedFile struct {
	size     int64
	modified time.Time
	sum      uint64
}

var savedSeed = maphash.MakeSeed()

// differs reports whether p's document has a file whose text is another.
func (d *saved) differs(p session.Place) bool {
	info, err := os.Stat(p.Path)
	if err != nil || !info.Mode().IsRegular() || p.Path == p.Key {
		return false
	}
	if info.Size() != int64(p.Src.Len()) {
		return true
	}
	d.mu.Lock()
	f, ok := d.files[p.Path]
	d.mu.Unlock()
	if !ok || f.size != info.Size() || !f.modified.Equal(info.ModTime()) {
		text, err := regular.ReadFile(p.Path, int64(p.Src.Len()))
		if err != nil {
			return false
		}
		f = savedFile{info.Size(), info.ModTime(), maphash.Bytes(savedSeed, text)}
		d.mu.Lock()
		if d.files == nil {
			d.files = map[string]savedFile{}
		}
		d.files[p.Path] = f
		d.mu.Unlock()
	}
	return f.sum != maphash.String(savedSeed, p.Src.Text())
}

// forget drops what is remembered of a file, when its document is closed.
func (d *saved) forget(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.files, path)
}
