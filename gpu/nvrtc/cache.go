package nvrtc

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"dmir/base/atomicfile"
	"dmir/base/local"
)

// cacheLimit is how many bytes of compiled code are kept.
const cacheLimit = 512 << 20

// format is part of every key: it changes with Result, so that old entries are not
// found.
const format = "dmir-nvrtc-2"

// CacheDir is the folder of what was compiled.
func CacheDir() (string, error) { return local.CacheDir("nvrtc") }

// cacheKey is a hash of everything that the result depends on. compiler also
// distinguishes builds of one version.
func cacheKey(compiler, source string, headers []Header, arch string, opts Options) string {
	h := sha256.New()
	part := func(s string) { fmt.Fprintf(h, "%d:%s", len(s), s) }
	part(format)
	part(compiler)
	part(arch)
	part(opts.Name)
	part(strings.Join(flags(arch, opts), "\x00"))
	part(source)
	for _, header := range headers {
		part(header.Name)
		part(header.Text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// entry is the content of a file of the cache. The sum detects damaged files.
type entry struct {
	Key    string
	Result Result
	Sum    [32]byte // of the machine code
}

// readCache returns the result of an earlier compilation, or nil. A damaged file
// counts as missing.
func readCache(key string) *Result {
	dir, err := CacheDir()
	if err != nil {
		return nil
	}
	path := filepath.Join(dir, key)
	if !local.IsOwn(path) {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil
	}
	var e entry
	if err := gob.NewDecoder(z).Decode(&e); err != nil || e.Key != key || e.Sum != sha256.Sum256(e.Result.Cubin) {
		return nil
	}
	now := time.Now()
	os.Chtimes(path, now, now) // trim deletes by time of use; an error does no harm
	e.Result.Cached = true
	return &e.Result
}

// writeCache stores a result. It ignores errors: the next compilation is then not
// faster.
func writeCache(key string, r *Result) {
	dir, err := CacheDir()
	if err != nil || local.MakeDir(dir) != nil {
		return
	}
	err = atomicfile.WriteFile(filepath.Join(dir, key), 0o644, func(w io.Writer) error {
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // text and code become four times smaller
		if err := gob.NewEncoder(z).Encode(entry{key, *r, sha256.Sum256(r.Cubin)}); err != nil {
			return err
		}
		return z.Close()
	})
	if err == nil {
		trim(dir, cacheLimit)
	}
}

// trim deletes the entries that were not used for longest until the folder
// holds limit bytes at most.
func trim(dir string, limit int64) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	var total int64
	for _, e := range list {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		files = append(files, info)
		total += info.Size()
	}
	sort.Slice(files, func(i, j int) bool { return files[i].ModTime().Before(files[j].ModTime()) })
	for _, f := range files {
		if total <= limit {
			return
		}
		if os.Remove(filepath.Join(dir, f.Name())) == nil {
			total -= f.Size()
		}
	}
}
