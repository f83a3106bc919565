package diag

import (
	"strings"
	"testing"
)

// TestRegister registers codes, finds them by code and by name in any case, and
// refuses what is incomplete or taken.
func TestRegister(t *testing.T) {
	before := register
	defer func() { register = before }()
	register = map[string]*Code{}
	Register([]Code{
		{Code: "DM002", Name: "second", Summary: "the line of the list", Doc: "## What\nText.\n", Ignorable: true},
		{Code: "DM001", Name: "first", Doc: "One thing. And more.", Help: "do it"},
	})
	Register([]Code{{Code: "DM009", Name: "first", Doc: "Another."}})
	if c := Find("first"); c.Code != "DM001" {
		t.Errorf("Find of a name of two codes = %+v", c)
	}
	delete(register, "DM009")
	for _, key := range []string{"DM001", "dm001", "first", "First"} {
		if c := Find(key); c.Code != "DM001" || c.Summary != "One thing" {
			t.Errorf("Find(%q) = %+v", key, c)
		}
	}
	if c := Find("third"); c.Code != "" {
		t.Errorf("Find of an unknown name = %+v", c)
	}
	var pages []string
	for _, c := range Codes() {
		pages = append(pages, c.Markdown())
	}
	const want = `# DM001 first

One thing. And more.

## What to do
Do it.
# DM002 second

The line of the list.

## What
Text.

## Silence
One line: ` + "`// dmir: ignore[DM002] reason`. Everywhere: `ignore = [\"DM002\"]` under `[lint]` in `dmir.toml`.\n"
	if got := strings.Join(pages, ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, c := range []struct {
		code Code
		want string
	}{
		{Code{Code: "DM003", Name: "third"}, "no documentation"},
		{Code{Code: "DM003", Doc: "Text."}, "() has no name"},
		{Code{Name: "third", Doc: "Text."}, "third) has no name"},
		{Code{Code: "DM001", Name: "third", Doc: "Text."}, "DM001 is registered as first and as third"},
		{Code{Code: "DM004", Name: "second", Doc: "Text."}, "DM002 and DM004 are both named second"},
	} {
		t.Run(c.want, func(t *testing.T) {
			defer func() {
				if r, _ := recover().(string); !strings.Contains(r, c.want) {
					t.Errorf("panic %q, want one with %q", r, c.want)
				}
			}()
			Register([]Code{c.code})
		})
	}
}
