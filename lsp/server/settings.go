package server

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/workspace"
)

// settings remembers what the editor sent, so that a pull starts from it, and
// what was switched over since.
type settings struct {
	pulling sync.Mutex // held by a pull: of two, the answer that is older must not come last
	mu      sync.Mutex
	base    workspace.Settings            // of initialize
	general workspace.Settings            // as the editor last sent them
	folders map[string]workspace.Settings // those of each folder, by its path on disk
	flipped map[string]bool               // switches that differ from what the editor last sent
}

// The switches of dmir.toggle.
const (
	switchHints = "hints"
	switchLint  = "lint"
)

// switches are the settings that can be switched over.
var switches = map[string]func(*workspace.Settings) *bool{
	switchHints: func(s *workspace.Settings) *bool { return &s.Hints },
	switchLint:  func(s *workspace.Settings) *bool { return &s.Lint },
}

// flip switches over one of switches, until the editor sends another value for
// it, and reports how it stands now.
func (s *server) flip(name string) bool {
	s.settings.mu.Lock()
	if s.settings.flipped == nil {
		s.settings.flipped = map[string]bool{}
	}
	s.settings.flipped[name] = !s.settings.flipped[name]
	changed := s.useSettings()
	now := s.Docs.Settings()
	s.settings.mu.Unlock()
	if changed {
		s.refresh()
	}
	return *switches[name](&now)
}

// useSettings hands the settings on; the lock is held.
func (s *server) useSettings() (changed bool) {
	flip := func(set workspace.Settings) workspace.Settings {
		for name, on := range s.settings.flipped {
			if b := switches[name](&set); on {
				*b = !*b
			}
		}
		return set
	}
	folders := make(map[string]workspace.Settings, len(s.settings.folders))
	for dir, set := range s.settings.folders {
		folders[dir] = flip(set)
	}
	return s.Docs.SetSettings(flip(s.settings.general), folders)
}

// initSettings reads the initialization options: a settings object, whether the
// workspace is trusted, and what the editor can show beyond what the protocol
// has words for: panels, and images in Markdown.
func (s *server) initSettings(raw protocol.LSPAny) {
	s.settings.base, s.settings.general = workspace.Defaults(), workspace.Defaults()
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	var client struct {
		Trusted  *bool `json:"trusted"`
		Panels   bool  `json:"panels"`
		Pictures *bool `json:"pictures"`
		Python   bool  `json:"python"`
	}
	if json.Unmarshal(raw, &client) == nil {
		if client.Trusted != nil {
			s.jobs.Trust(*client.Trusted)
		}
		s.Features.Panels, s.pythonOnly = client.Panels, client.Python
		if client.Pictures != nil {
			s.Features.Pictures = *client.Pictures
		}
	}
	set, errs := s.settings.base.Decode(section(raw))
	s.complain(errs)
	s.settings.base, s.settings.general = set, set
	s.useSettings()
}

// section unwraps {"dmir": {…}}.
func section(raw []byte) []byte {
	var outer struct {
		Dmir json.RawMessage `json:"dmir"`
	}
	if json.Unmarshal(raw, &outer) == nil && len(outer.Dmir) > 0 {
		return outer.Dmir
	}
	return raw
}

// changeConfiguration takes settings that are pushed. A client that can be
// asked is asked as well: what is pushed does not tell folders apart, and some
// push null here to be asked.
func changeConfiguration(s *server, p *protocol.DidChangeConfigurationParams) error {
	if raw := section(p.Settings); len(raw) > 0 && string(raw) != "null" && string(raw) != "{}" {
		s.applySettings(raw, nil)
	}
	go s.pullSettings()
	return nil
}

// pullSettings asks for the settings that hold everywhere and for those of each
// folder.
func (s *server) pullSettings() {
	if !s.Features.Configuration {
		return
	}
	s.settings.pulling.Lock()
	defer s.settings.pulling.Unlock()
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	name := "dmir"
	items := []protocol.ConfigurationItem{{Section: &name}}
	folders := s.Folders.All()
	for _, f := range folders {
		scope := uri.URI(f.URI)
		items = append(items, protocol.ConfigurationItem{Section: &name, ScopeURI: &scope})
	}
	var got []protocol.LSPAny
	err := s.Call(ctx, protocol.MethodWorkspaceConfiguration, &protocol.ConfigurationParams{Items: items}, &got)
	if err != nil || len(got) == 0 {
		return
	}
	own := map[string][]byte{}
	for i, raw := range got[1:] {
		if i < len(folders) && string(raw) != "null" {
			own[folders[i].Path] = raw
		}
	}
	s.applySettings(got[0], own)
}

// applySettings takes the settings that hold everywhere and those of folders;
// null and nil change nothing.
func (s *server) applySettings(raw []byte, folders map[string][]byte) {
	s.settings.mu.Lock()
	was := s.settings.general
	var complaints []error
	decode := func(raw []byte) workspace.Settings {
		set, errs := s.settings.base.Decode(raw)
		complaints = append(complaints, errs...)
		return set
	}
	if string(raw) != "null" {
		s.settings.general = decode(raw)
	}
	if folders != nil {
		s.settings.folders = map[string]workspace.Settings{}
		for dir, raw := range folders {
			s.settings.folders[dir] = decode(raw)
		}
	}
	for name, of := range switches {
		if *of(&was) != *of(&s.settings.general) {
			delete(s.settings.flipped, name)
		}
	}
	changed := s.useSettings()
	s.settings.mu.Unlock()
	s.complain(complaints)
	if changed {
		s.diagnostics.SettingsChanged()
		s.refresh()
	}
}

func (s *server) complain(errs []error) {
	for _, err := range errs {
		s.Log(protocol.MessageTypeWarning, strings.ToUpper(err.Error()[:1])+err.Error()[1:])
	}
}

// trust sets whether the user trusts the workspace.
func trust(s *server, p *trustParams) error {
	s.jobs.Trust(p.Trusted)
	s.pages.AllChanged() // what is compiled only where that is trusted
	return nil
}

type trustParams struct {
	Trusted bool `json:"trusted"`
}
