package server

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"go.lsp.dev/protocol"

	"dmir/lsp/workspace"
)

// settings remembers what the editor sent, so that a pull starts from it.
type settings struct {
	mu   sync.Mutex
	base workspace.Settings // of initialize
}

// initSettings reads the initialization options: a settings object, and
// whether the workspace is trusted.
func (s *server) initSettings(raw protocol.LSPAny) {
	s.settings.base = workspace.Defaults()
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	var trust struct {
		Trusted *bool `json:"trusted"`
	}
	if json.Unmarshal(raw, &trust) == nil && trust.Trusted != nil {
		s.trusted.Store(*trust.Trusted)
	}
	set, errs := s.settings.base.Decode(section(raw))
	s.complain(errs)
	s.settings.base = set
	s.docs.SetSettings(set)
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

// changeConfiguration takes settings that are pushed. A client that pulls
// sends null here, and is asked.
func changeConfiguration(s *server, p *protocol.DidChangeConfigurationParams) error {
	if raw := section(p.Settings); len(raw) > 0 && string(raw) != "null" && string(raw) != "{}" {
		s.applySettings(raw)
		return nil
	}
	go s.pullSettings()
	return nil
}

func (s *server) pullSettings() {
	if !s.features.configuration {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, 30*time.Second)
	defer cancel()
	name := "dmir"
	var got []protocol.LSPAny
	err := s.client.call(ctx, protocol.MethodWorkspaceConfiguration, &protocol.ConfigurationParams{
		Items: []protocol.ConfigurationItem{{Section: &name}},
	}, &got)
	if err == nil && len(got) == 1 && string(got[0]) != "null" {
		s.applySettings(got[0])
	}
}

func (s *server) applySettings(raw []byte) {
	s.settings.mu.Lock()
	set, errs := s.settings.base.Decode(raw)
	changed := s.docs.SetSettings(set)
	s.settings.mu.Unlock()
	s.complain(errs)
	if changed {
		s.refresh()
	}
}

func (s *server) complain(errs []error) {
	for _, err := range errs {
		s.client.log(protocol.MessageTypeWarning, strings.ToUpper(err.Error()[:1])+err.Error()[1:])
	}
}

// trust hears that the person trusts the workspace, or no longer does.
func trust(s *server, p *trustParams) error {
	s.trusted.Store(p.Trusted)
	if !p.Trusted {
		s.runs.stop()
	}
	return nil
}

type trustParams struct {
	Trusted bool `json:"trusted"`
}
