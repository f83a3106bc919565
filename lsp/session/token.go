package session

import (
	"strings"

	"go.lsp.dev/protocol"
)

// CloneToken returns a progress token detached from the message that brought it.
func CloneToken(t protocol.ProgressToken) protocol.ProgressToken {
	if str, ok := t.(protocol.String); ok {
		return protocol.String(strings.Clone(string(str)))
	}
	return t
}
