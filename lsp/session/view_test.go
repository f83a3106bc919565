package session

import (
	"strings"
	"testing"
)

// The address of a view holds the address of the document, whatever that is made
// of.
func TestViewAddress(t *testing.T) {
	for _, c := range []struct{ view, document, fn, want string }{
		{"generic", "file:///a/ffn.dmir", "", "dmir:/generic/ffn.mlir?file%3A%2F%2F%2Fa%2Fffn.dmir"},
		{"expanded", "file:///work%20space/t.dmir", "", "dmir:/expanded/t.dmir?file%3A%2F%2F%2Fwork%2520space%2Ft.dmir"},
		{"cost", "file:///a+b%23/%C3%A9.mlir", "", "dmir:/cost/%C3%A9.txt?file%3A%2F%2F%2Fa%2Bb%2523%2F%25C3%25A9.mlir"},
		{"fixed", "untitled:Untitled-1", "", "dmir:/fixed/Untitled-1.dmir?untitled%3AUntitled-1"},
		{"fixed", "vscode-remote://ssh+host/a/b.dmir?x=y#z", "", "dmir:/fixed/b.dmir?vscode-remote%3A%2F%2Fssh%2Bhost%2Fa%2Fb.dmir%3Fx%3Dy%23z"},
		{"cuda", "file:///a/ffn.dmir", "layer", "dmir:/cuda/layer.cu?file%3A%2F%2F%2Fa%2Fffn.dmir%20%40layer"},
		{"after-fuse", "file:///a%20b/ffn.dmir", "odd/na me @x", "dmir:/after-fuse/odd_na_me_@x.dmir?file%3A%2F%2F%2Fa%2520b%2Fffn.dmir%20%40odd%2Fna%20me%20%40x"},
	} {
		got := ViewAddress(c.view, c.document, c.fn)
		if got != c.want {
			t.Errorf("%s of %s is at %s, want %s", c.view, c.document, got, c.want)
		}
		if v, ok := ParseView(got); !ok || v.Name != c.view || v.Document != c.document || v.Func != c.fn {
			t.Errorf("%s is %+v", got, v)
		}
	}
	for _, bad := range []string{"", "file:///a", "dmir:", "dmir:/generic", "dmir:/generic/a/b?c", "dmir:/generic/a?%zz", "dmir:///%"} {
		if v, ok := ParseView(bad); ok {
			t.Errorf("%q is a view: %+v", bad, v)
		}
	}
}

// Whatever a document is called, the address of its view leads back to it.
func FuzzViewAddress(f *testing.F) {
	for _, document := range []string{"file:///a/b.dmir", "untitled:x", "a b+c%20d", "?#", "é\x00", "dmir:/fixed/b.dmir?file%3A%2F%2F%2Fb.dmir", ""} {
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document string) {
		at := ViewAddress("fixed", document, "")
		v, ok := ParseView(at)
		if ok && (v.Name != "fixed" || v.Document != document) {
			t.Errorf("%q is at %q, which is %+v", document, at, v)
		}
		if !ok && strings.HasPrefix(document, "file:///") && !strings.ContainsAny(document, "\x00") {
			t.Errorf("%q is at %q, which leads nowhere", document, at)
		}
	})
}
