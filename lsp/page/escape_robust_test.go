package page

import (
	"strings"
	"testing"

	"dmir/base/escape/escapetest"
)

// A message that stands for a view ends no comment, whatever it quotes.
func TestCommentedMessages(t *testing.T) {
	for _, name := range escapetest.Names {
		text := comment("there is no function @" + name)
		if code := escapetest.Code(text); strings.TrimSpace(code) != "" {
			t.Errorf("%q: %q is no comment", name, code)
		}
	}
}
