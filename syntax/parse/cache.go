package parse

import (
	"maps"
	"strings"
	"sync"

	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Cache makes reading the next version of a text cheap: an op whose text was in
// the last version is not read again. It is keyed by the text alone, so ops may
// move and be copied. The zero value is ready; it is safe for concurrent use.
//
// It keeps what the last version used and nothing else. Texts are copied into
// it, so that an op that never changes does not keep alive the version of the
// file in which it was first read.
type Cache struct {
	mu   sync.Mutex
	last map[chunk]*kept
}

// chunk is what an op's tree depends on: its text up to its region, and what
// the first stage found out about it.
type chunk struct {
	text  string
	form  ast.Form
	block bool // the region's entry block has arguments of its own
}

// kept is the tree of a chunk, without place and regions, and the copy of its
// text that keys it.
type kept struct {
	op   ast.Op
	text string
}

// File is like the function File.
func (c *Cache) File(src *source.File) *ast.File {
	f := &ast.File{Src: src}
	if d, bad := unreadable(src.Text); bad {
		f.Diags = []diag.Diagnostic{d}
		return f
	}
	s := newScanner(src.Text)
	f.Items = s.items()

	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	var mu sync.Mutex
	used := make(map[chunk]*kept, len(last))
	spread(s.ops, func(d *detailer, ops []*ast.Op) {
		mine := make(map[chunk]*kept, len(ops))
		for _, op := range ops {
			d.cached(op, src.Text, last, mine)
		}
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(used, mine)
	})
	c.mu.Lock()
	c.last = used
	c.mu.Unlock()
	f.Diags = collect(s.ops)
	return f
}

// cached fills in op from the last version or this one if its text is there,
// and reads it otherwise.
func (d *detailer) cached(op *ast.Op, text string, last, used map[chunk]*kept) {
	end := op.Off + int(op.Len)
	body := len(op.Regions) == 1 && op.Regions[0].Close == op.Len-1
	if len(op.Diags) > 0 || len(op.Regions) > 0 && !body || op.Form == ast.Split || op.Form == ast.Resource {
		d.op(op, text[op.Off:end])
		return
	}
	key := chunk{form: op.Form}
	if body {
		end = op.Off + int(op.Regions[0].Open) + 1
		if b := op.Regions[0].Blocks; len(b) > 0 {
			key.block = len(b[0].Args) > 0
		}
	}
	key.text = text[op.Off:end]
	k := used[key]
	if k == nil {
		if k = last[key]; k == nil {
			k = &kept{text: strings.Clone(key.text)}
			k.op = ast.Op{Off: op.Off, Len: op.Len, Form: op.Form, Regions: op.Regions}
			d.op(&k.op, k.text)
			k.op.Regions = nil
		}
		key.text = k.text
		used[key] = k
	}
	off, n, regions := op.Off, op.Len, op.Regions
	*op = k.op
	op.Off, op.Len, op.Regions = off, n, regions
}
