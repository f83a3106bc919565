package server

import (
	"fmt"
	"path/filepath"
	"testing"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"
)

// The folders of the workspace, however an editor names them, and as they come
// and go.
func TestWorkspaceFolders(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(first, "a.dmir"), "func.func private @first()\n")
	writeFile(t, filepath.Join(second, "b.dmir"), "func.func private @second()\n")
	for _, root := range []string{
		fmt.Sprintf(`"rootUri":null,"workspaceFolders":[{"uri":%q,"name":"w"},{"uri":"untitled:x","name":"none"}]`, uri.File(first)),
		fmt.Sprintf(`"rootUri":%q`, uri.File(first)),
		fmt.Sprintf(`"rootUri":%q,"workspaceFolders":null`, uri.File(first)),
		fmt.Sprintf(`"rootUri":null,"rootPath":%s`, quote(first)),
	} {
		e := connect(t, Options{}, nil)
		e.must("initialize", `{"processId":null,"capabilities":{},`+root+`}`, nil)
		e.notify("initialized", "{}")
		names := func() (out string) {
			t.Helper()
			var syms protocol.SymbolInformationSlice
			e.must("workspace/symbol", `{"query":""}`, &syms)
			for _, s := range syms {
				out += s.Name
			}
			return out
		}
		if got := names(); got != "@first" {
			t.Errorf("%s: symbols %q", root, got)
		}
		change := func(added, removed string) {
			e.notify("workspace/didChangeWorkspaceFolders", fmt.Sprintf(`{"event":{"added":[%s],"removed":[%s]}}`, added, removed))
		}
		folder := func(dir string) string { return fmt.Sprintf(`{"uri":%q,"name":"w"}`, uri.File(dir)) }
		change(folder(second), folder(first))
		if got := names(); got != "@second" {
			t.Errorf("%s: symbols after a change %q", root, got)
		}
		change("", folder(second))
		if got := names(); got != "" {
			t.Errorf("%s: symbols of no folder %q", root, got)
		}
	}
}
