package session

import (
	"path/filepath"
	"slices"
	"sync"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/workspace"
)

// Folders are the roots of the workspace that are folders on disk, in the
// editor's order.
type Folders struct {
	mu   sync.Mutex
	list []workspace.Address
}

// Init sets the folders in the parameters of initialize: the list if there is one,
// else the single folder in its older fields.
func (f *Folders) Init(p *protocol.InitializeParams) {
	named, ok := p.WorkspaceFolders.Get()
	//lint:ignore SA1019 older editors send it in no other field
	root, path := p.RootURI, p.RootPath
	switch {
	case ok:
		for _, w := range named {
			f.Add(w.URI)
		}
	case root != nil:
		f.Add(*root)
	default:
		if path, _ := path.Get(); path != "" {
			f.Add(uri.File(path))
		}
	}
}

func (f *Folders) Add(u uri.URI) {
	a := AddressOf(u)
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.Path != a.Key && !slices.Contains(f.list, a) { // a folder on disk
		f.list = append(f.list, a)
	}
}

func (f *Folders) Remove(u uri.URI) {
	key := AddressOf(u).Key
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = slices.DeleteFunc(f.list, func(a workspace.Address) bool { return a.Key == key })
}

// All are the folders as they are now.
func (f *Folders) All() []workspace.Address {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list)
}

// Relative returns a path relative to the workspace: from its innermost folder
// that has it, with slashes; the path itself where no folder does.
func (f *Folders) Relative(path string) string {
	shortest := path
	for _, a := range f.All() {
		if rel, err := filepath.Rel(a.Path, path); err == nil && filepath.IsLocal(rel) && len(rel) < len(shortest) {
			shortest = filepath.ToSlash(rel)
		}
	}
	return shortest
}
