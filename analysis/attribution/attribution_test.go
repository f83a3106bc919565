package attribution

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/dialect/loc"
)

func TestModule(t *testing.T) {
	for _, c := range []struct{ scopes, module, scope string }{
		{"jit(step)/jvp(Net)/Block_0/Dense_0/dot_general", "Net/Block_0/Dense_0", "jit(step)/jvp(Net)/Block_0/Dense_0"},
		{"jit(step)/transpose(jvp(Net))/Block_0/add", "Net/Block_0", "jit(step)/transpose(jvp(Net))/Block_0"},
		{"jit(step)/jvp(loss)/sub", "loss", "jit(step)/jvp(loss)"},
		{
			"jit(step)/transpose(jvp())/while/body/checkpoint/rematted_computation/vmap(attn)/mul",
			"attn", "jit(step)/transpose(jvp())/while/body/checkpoint/rematted_computation/vmap(attn)",
		},
		{"jit(step)/mul", "", "jit(step)"},
		{": __main__.GPT/h.0: __main__.Block/h.0.attn: m.Attention/linear: aten.linear.default", "h.0.attn Attention", "h.0.attn/linear"},
		{": __main__.Net/relu: aten.relu.default", " Net", "relu"},
		{"model/dense/MatMul", "model/dense", "model/dense"},
		{"node_7", "", ""},
	} {
		p := Place{Trace: loc.Trace{Scopes: []string{c.scopes}}}
		path, class := p.Module()
		if class != "" {
			path += " " + class
		}
		if path != c.module || p.Scope() != c.scope {
			t.Errorf("%s is the module %q, not %q, and the scope %q, not %q", c.scopes, path, c.module, p.Scope(), c.scope)
		}
	}
}

func TestOutline(t *testing.T) {
	const text = `import x
def f(a,
      b):
    """def no(): class None:"""
    return [
def_in_brackets,
    ]

class A(Base):
    # a comment
    async def g(self): return 1
    def h(self):
        s = '''
def in_a_string(): pass
'''
        def inner():
            pass
        return s
y = 1
`
	var got []string
	f := &File{Lines: Lines(text)}
	for _, s := range f.Scopes() {
		kind := "def"
		if s.Class {
			kind = "class"
		}
		got = append(got, fmt.Sprintf("%s %s %d-%d", kind, s.Name, s.Line, s.End))
	}
	if want := "def f 2-7, class A 9-18, def A.g 11-11, def A.h 12-18, def A.h.inner 16-17"; strings.Join(got, ", ") != want {
		t.Errorf("the outline is %s", strings.Join(got, ", "))
	}
	if in := f.Around(17); in == nil || in.Name != "A.h.inner" || f.Around(10) != nil {
		t.Errorf("line 17 is in %+v, 10 in %+v", in, f.Around(10))
	}
}

// A file of the person's own is one of the workspace that is in no environment and that its trace or the workspace has; others are
// never opened.
func TestOwn(t *testing.T) {
	root := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret.py")
	for path, text := range map[string]string{filepath.Join(root, "model.py"): "x = 1\n", filepath.Join(root, "venv/lib/python3.12/site-packages/flax/nn.py"): "y\n", outside: "z\n"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(root, "link.py")); err != nil {
		t.Fatal(err)
	}
	s := &Sources{Root: root, Trace: &Trace{Files: []TracedFile{{Path: "pkg/net.py", Name: "/home/ann/pkg/net.py", Text: "n = 1\nm = 2\n"}}}}
	for name, want := range map[string]string{
		filepath.Join(root, "model.py"): "model.py own 1 lines",
		"model.py":                      "model.py own 1 lines",
		filepath.Join(root, "venv/lib/python3.12/site-packages/flax/nn.py"): "venv/lib/python3.12/site-packages/flax/nn.py 0 lines",
		outside:                        outside + " 0 lines",
		"../secret.py":                 "../secret.py 0 lines",
		filepath.Join(root, "link.py"): "link.py own 0 lines",
		filepath.Join(root, "gone.py"): "gone.py own 0 lines",
		"/home/ann/pkg/net.py":         "pkg/net.py own 2 lines",
		"<frozen runpy>":               "<frozen runpy> 0 lines",
	} {
		f := s.File(name)
		got := f.Path
		if f.Own {
			got += " own"
		}
		if got += fmt.Sprintf(" %d lines", len(f.Lines)); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	frames := []loc.Frame{{File: "<frozen runpy>"}, {File: filepath.Join(root, "venv/lib/python3.12/site-packages/flax/nn.py"), Line: 9}, {File: "model.py", Line: 1}, {File: "/home/ann/pkg/net.py", Line: 2}}
	if p := s.Place(loc.Stack(frames)); p.File == nil || p.File.Path != "model.py" {
		t.Errorf("the frame that counts is %+v", p.Frame)
	}
	s.Unfold = []string{"flax"}
	s.files, s.place = nil, nil
	if p := s.Place(loc.Stack(frames)); p.Frame.Line != 9 {
		t.Errorf("unfolded it is %+v", p.Frame)
	}
}

// Lines map in their order to equal ones.
func FuzzMapLines(f *testing.F) {
	f.Add("a\nb\nc\n", "x\na\nc\n")
	f.Add("", "a\n")
	f.Add("a\na\na\n", "a\n")
	f.Add("\\ No newline\n@@ -1,1 +1,1 @@\n-x\n", "@@ -1,1 +1,1 @@\n+x\n")
	f.Fuzz(func(t *testing.T, old, text string) {
		a, b := Lines(old), Lines(text)
		to := MapLines(a, b)
		last := 0
		for n, m := range to {
			switch {
			case m == 0:
			case m < 0 || m > len(b) || n > len(a) || m <= last || a[n-1] != b[m-1]:
				t.Fatalf("line %d of %q is %d of %q", n, a, m, b)
			default:
				last = m
			}
		}
	})
}

func FuzzReadTrace(f *testing.F) {
	f.Add([]byte(`{"dmir_trace": 1, "name": "a", "program": "a.mlir", "files": [{"path": "a.py", "name": "/a.py", "text": "x"}]}`))
	f.Add([]byte(`{"dmir_trace": 1, "name": "a", "program": "../a.mlir"}`))
	f.Add([]byte(`{"dmir_trace": 1, "name": "a", "program": "a.mlir", "files": [{"path": "../../a.py"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		trace, err := ReadTrace("/w/.dmir/traces/a.json", data)
		if err != nil {
			return
		}
		if filepath.Dir(trace.ProgramPath()) != "/w/.dmir/traces" || trace.Root() != "/w" {
			t.Errorf("the program is %s of %s", trace.ProgramPath(), trace.Root())
		}
		for _, file := range trace.Files {
			if !strings.HasPrefix(filepath.Join("/w", file.Path)+"/", "/w/") {
				t.Errorf("%s is outside", file.Path)
			}
		}
	})
}

func FuzzOutline(f *testing.F) {
	f.Add("class A:\n  def f(x): '''\n  '''\n")
	f.Add("def f(\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines := Lines(text)
		for _, s := range outline(lines) {
			if s.Line < 1 || s.End < s.Line || s.End > len(lines) {
				t.Fatalf("%+v of %d lines", s, len(lines))
			}
		}
	})
}
