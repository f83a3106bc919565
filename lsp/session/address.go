package session

import (
	"strings"

	"go.lsp.dev/uri"

	"dmir/lsp/workspace"
)

// AddressOf returns the address of a document, detached from the message that
// brought it. The path of one that is no file is its address.
func AddressOf(u uri.URI) workspace.Address {
	key := strings.Clone(string(u))
	if v, err := uri.Parse(key); err == nil {
		key = string(v)
		if v.IsFile() {
			return workspace.Address{Key: key, URI: key, Path: v.FsPath()}
		}
	}
	a := workspace.Address{Key: key, URI: key, Path: key}
	if rest, ok := strings.CutPrefix(key, "git:"); ok { // an older version of a file, as VS Code names it
		path, _, _ := strings.Cut(rest, "?")
		a.Base = AddressOf(uri.URI("file://" + path)).Path
		return a
	}
	if v, ok := ParseView(key); ok && v.Document != "" {
		a.Base = AddressOf(uri.URI(v.Document)).Path // it is seen as what it shows
	}
	return a
}
