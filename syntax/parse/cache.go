package parse

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Cache makes reading the next version of a text cheap: an op whose text was in
// the last version is not read again. It is keyed by the text alone, so ops may
// move and be copied. The zero value is ready; it is safe for concurrent use.
//
// It keeps what the last version used, and at most as much again of what older
// versions used. Texts are copied into it, so that an op that never changes does
// not keep alive the version of the file in which it was first read.
type Cache struct {
	version atomic.Uint64
	mu      sync.RWMutex
	known   map[chunk]*kept
}

// chunk is what an op's tree depends on: its text up to its region, and what
// the first stage found out about it.
type chunk struct {
	text  string
	form  ast.Form
	block bool // the region's entry block has arguments of its own
}

// kept is the tree of a chunk without place and regions, the copy of its text
// that keys it, and the version of the text that used it last.
type kept struct {
	op   ast.Op
	text string
	used atomic.Uint64
}

// File is like the function File.
func (c *Cache) File(src *source.File) *ast.File {
	f := &ast.File{Src: src}
	if d, bad := unreadable(src.Text()); bad {
		f.Diags = []diag.Diagnostic{d}
		return f
	}
	s := newScanner(src.Text())
	f.Items = s.items()

	version := c.version.Add(1)
	var mu sync.Mutex
	fresh := map[chunk]*kept{}
	var used atomic.Int64
	c.mu.RLock()
	spread(s.ops, func(d *detailer, ops []*ast.Op) {
		mine := map[chunk]*kept{}
		n := 0
		for _, op := range ops {
			if k := d.cached(op, src.Text(), c.known, mine); k != nil && k.used.Swap(version) != version {
				n++
			}
		}
		used.Add(int64(n))
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(fresh, mine)
	})
	c.mu.RUnlock()
	c.keep(fresh, version, int(used.Load()))
	f.Diags = collect(s.ops)
	return f
}

// keep adds the chunks that a version brought and, once more than half of what
// is known is out of use, forgets that.
func (c *Cache) keep(fresh map[chunk]*kept, version uint64, used int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = make(map[chunk]*kept, len(fresh))
	}
	maps.Copy(c.known, fresh)
	if len(c.known) > 2*used+64 {
		maps.DeleteFunc(c.known, func(_ chunk, k *kept) bool { return k.used.Load() != version })
	}
}

// cached fills in op from what is known or was made just now, and reads it
// otherwise. The result is nil for an op that is not worth keeping, or whose
// tree depends on more than its chunk.
func (d *detailer) cached(op *ast.Op, text string, known, mine map[chunk]*kept) *kept {
	end := op.Off + int(op.Len)
	body := len(op.Regions) == 1 && op.Regions[0].Close == op.Len-1
	if len(op.Diags) > 0 || len(op.Regions) > 0 && !body || op.Form == ast.Split || op.Form == ast.Resource {
		d.op(op, text[op.Off:end])
		return nil
	}
	key := chunk{form: op.Form}
	if body {
		end = op.Off + int(op.Regions[0].Open) + 1
		if b := op.Regions[0].Blocks; len(b) > 0 {
			key.block = len(b[0].Args) > 0
		}
	}
	key.text = text[op.Off:end]
	k := known[key]
	if k == nil {
		k = mine[key]
	}
	if k == nil {
		k = &kept{text: strings.Clone(key.text)}
		k.op = ast.Op{Off: op.Off, Len: op.Len, Form: op.Form, Regions: op.Regions}
		d.op(&k.op, k.text)
		k.op.Regions = nil
		key.text = k.text
		mine[key] = k
	}
	off, n, regions := op.Off, op.Len, op.Regions
	*op = k.op
	op.Off, op.Len, op.Regions = off, n, regions
	return k
}
