package page

import (
	"testing"

	"dmir/lsp/session"
)

// The address of a view holds a function exactly if the view is of one.
func TestViewForms(t *testing.T) {
	for _, name := range Views() {
		at, ok := session.ParseView(session.ViewAddress(name, "file:///a.dmir", "f"))
		if !ok || at.Name != name || (at.Func == "f") != (views[name].built != nil) {
			t.Errorf("%s: %+v", name, at)
		}
	}
}
