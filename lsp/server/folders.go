package server

import "go.lsp.dev/protocol"

// changeFolders follows the folders that are added to the workspace and taken
// out of it.
func changeFolders(s *server, p *protocol.DidChangeWorkspaceFoldersParams) error {
	for _, w := range p.Event.Removed {
		s.Folders.Remove(w.URI)
	}
	for _, w := range p.Event.Added {
		s.Folders.Add(w.URI)
	}
	go s.pullSettings()
	return nil
}
