package workspace

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
)

// Settings are what a person chose in the editor.
type Settings struct {
	Target string           // a machine's name; "" leaves the choice to dmir.toml
	Bind   map[string]int64 // sizes of symbolic dimensions; they win over dmir.toml
	Hints  bool
	Lint   bool

	LintHints     bool // show findings about what the compiler does by itself
	LintWorkspace bool // report files that are not open

	Heat   string // HeatOff, "time", "bytes" or "waste": what lines are coloured by
	Device string // "auto" or "reference"
	Seed   int64

	PlanDevices int    // that training steps are planned for, unless their program has a mesh; 0 leaves it to dmir.toml
	PlanTarget  string // the cluster that plans are for; "" leaves the choice to dmir.toml
}

// Defaults are the settings of an editor that sends none.
func Defaults() Settings {
	return Settings{Hints: true, Lint: true, LintHints: true, Heat: HeatOff, Device: "auto"}
}

// HeatOff leaves lines uncoloured.
const HeatOff = "off"

// Decode reads a settings object of the section "dmir" on top of s. What is
// absent or null keeps its value; what has the wrong type keeps it too and is
// reported, so that one mistyped setting does not lose the others.
func (s Settings) Decode(raw []byte) (Settings, []error) {
	var errs []error
	fields := func(raw []byte, where string) map[string]json.RawMessage {
		var m map[string]json.RawMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			errs = append(errs, fmt.Errorf("setting %s is not an object", where))
		}
		return m
	}
	read := func(m map[string]json.RawMessage, prefix, key string, into any) {
		if raw, ok := m[key]; ok && string(raw) != "null" {
			if err := json.Unmarshal(raw, into); err != nil {
				errs = append(errs, fmt.Errorf("setting dmir.%s%s: %s is not a %T", prefix, key, raw, into))
			}
		}
	}
	top := fields(raw, "dmir")
	read(top, "", "target", &s.Target)
	read(top, "", "heat", &s.Heat)
	if raw, ok := top["bind"]; ok && string(raw) != "null" {
		bind := map[string]int64{}
		for name, v := range fields(raw, "dmir.bind") {
			var n float64 // an editor may write 512.0
			if json.Unmarshal(v, &n) != nil || n != math.Trunc(n) || n < 0 || n > 1<<53 {
				errs = append(errs, fmt.Errorf("setting dmir.bind.%s: %s is not a size", name, v))
				continue
			}
			bind[name] = int64(n)
		}
		s.Bind = bind
	}
	for _, group := range []struct {
		name string
		keys map[string]any
	}{
		{"hints", map[string]any{"enabled": &s.Hints}},
		{"lint", map[string]any{"enabled": &s.Lint, "hints": &s.LintHints, "workspace": &s.LintWorkspace}},
		{"run", map[string]any{"device": &s.Device, "seed": &s.Seed}},
		{"plan", map[string]any{"devices": &s.PlanDevices, "target": &s.PlanTarget}},
	} {
		raw, ok := top[group.name]
		var nested map[string]json.RawMessage
		if ok && string(raw) != "null" {
			nested = fields(raw, "dmir."+group.name)
		}
		for key, into := range group.keys {
			read(nested, group.name+".", key, into)
			read(top, "", group.name+"."+key, into) // the flat spelling of some editors
		}
	}
	return s, errs
}

// Equal reports whether s and t are the same choices.
func (s Settings) Equal(t Settings) bool {
	return s.Target == t.Target && s.Hints == t.Hints && s.Lint == t.Lint && s.LintHints == t.LintHints && s.LintWorkspace == t.LintWorkspace && s.Heat == t.Heat && s.Device == t.Device && s.Seed == t.Seed &&
		s.PlanDevices == t.PlanDevices && s.PlanTarget == t.PlanTarget && maps.Equal(s.Bind, t.Bind)
}
