package server

import (
	"path/filepath"
	"slices"
	"sync"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/workspace"
)

// folders are the roots of the workspace that are folders on disk, in the
// editor's order.
type folders struct {
	mu   sync.Mutex
	list []workspace.Address
}

// init takes the folders that initialize names: the list where there is one,
// else the older ways to say the only one.
func (f *folders) init(p *protocol.InitializeParams) {
	named, ok := p.WorkspaceFolders.Get()
	//lint:ignore SA1019 older editors say it in no other way
	root, path := p.RootURI, p.RootPath
	switch {
	case ok:
		for _, w := range named {
			f.add(w.URI)
		}
	case root != nil:
		f.add(*root)
	default:
		if path, _ := path.Get(); path != "" {
			f.add(uri.File(path))
		}
	}
}

func (f *folders) add(u uri.URI) {
	a := address(u)
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.Path != a.Key && !slices.Contains(f.list, a) { // a folder on disk
		f.list = append(f.list, a)
	}
}

func (f *folders) remove(u uri.URI) {
	key := address(u).Key
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = slices.DeleteFunc(f.list, func(a workspace.Address) bool { return a.Key == key })
}

// all are the folders as they are now.
func (f *folders) all() []workspace.Address {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list)
}

// relative is a path as people say it in the workspace: from its innermost folder
// that has it, with slashes; the path itself where no folder does.
func (f *folders) relative(path string) string {
	shortest := path
	for _, a := range f.all() {
		if rel, err := filepath.Rel(a.Path, path); err == nil && filepath.IsLocal(rel) && len(rel) < len(shortest) {
			shortest = filepath.ToSlash(rel)
		}
	}
	return shortest
}

// changeFolders follows the folders that are added to the workspace and taken
// out of it.
func changeFolders(s *server, p *protocol.DidChangeWorkspaceFoldersParams) error {
	for _, w := range p.Event.Removed {
		s.folders.remove(w.URI)
	}
	for _, w := range p.Event.Added {
		s.folders.add(w.URI)
	}
	go s.pullSettings()
	return nil
}
