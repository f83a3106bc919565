package page_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dmir/analysis/attribution"
	"dmir/analysis/program"
	"dmir/analysis/report"
	"dmir/analysis/report/page"
	"dmir/dialect/ir"
	"dmir/syntax/source"
)

var dataElement = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)

// A page holds its data unharmed, whatever the names in it are.
func TestRender(t *testing.T) {
	for _, text := range []string{
		"plain", "</script><script>alert(1)</script>", "<!-- <script>", "a\u2028b\u2029c", `"quoted" \ & 'single'`, page.Nonce, "%s %d µ × …",
	} {
		t.Run(text, func(t *testing.T) {
			// An encoder that escapes nothing of its own.
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(map[string]string{"kind": "graph", "title": text}); err != nil {
				t.Fatal(err)
			}
			got := page.Render(text, b.Bytes())
			m := dataElement.FindSubmatch(got)
			if m == nil {
				t.Fatal("no data element")
			}
			var data map[string]string
			if err := json.Unmarshal(m[1], &data); err != nil || data["title"] != text {
				t.Errorf("got %q (%v)", data["title"], err)
			}
			if n := bytes.Count(bytes.ToLower(got), []byte("</script")); n != 2 {
				t.Errorf("%d ends of scripts, want 2", n)
			}
			if bytes.ContainsAny(m[1], "<>&\u2028\u2029") {
				t.Error("the data is not escaped")
			}
		})
	}
}

// A page asks for nothing from anywhere, and admits only its own script.
func TestSelfContained(t *testing.T) {
	html := string(page.Render("t", []byte("{}")))
	for _, bad := range []string{" src=", " href=", "@import", "url(h", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", " style="} {
		if strings.Contains(html, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	for _, want := range []string{"default-src 'none'", "script-src 'sha256-", `nonce="` + page.Nonce + `"`} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(html, "'unsafe-") {
		t.Error("the policy is lax")
	}
	if n := strings.Count(html, page.Nonce); n != 2 {
		t.Errorf("the nonce stands in %d places, want 2", n)
	}
}

// TestPages writes pages to the folder that DMIR_PAGES names, for the tests in a
// browser, and to a scratch folder otherwise.
func TestPages(t *testing.T) {
	dir := os.Getenv("DMIR_PAGES")
	if dir == "" {
		dir = t.TempDir()
	}
	write := func(name string, d report.Data) {
		t.Helper()
		html, err := report.HTML(d)
		if err != nil {
			t.Fatal(err)
		}
		if !dataElement.Match(html) {
			t.Errorf("%s: no data", name)
		}
		text, err := report.JSON(d)
		if err != nil {
			t.Fatal(err)
		}
		for ext, content := range map[string][]byte{".html": html, ".json": text} {
			if err := os.WriteFile(filepath.Join(dir, name+ext), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	examples, err := filepath.Glob("../../../examples/*.dmir")
	if err != nil || len(examples) == 0 {
		t.Fatal("no examples:", err)
	}
	small, err := filepath.Glob("testdata/*.dmir")
	if err != nil || len(small) == 0 {
		t.Fatal("no programs:", err)
	}
	loaded := map[string]*program.Program{}
	for _, path := range append(examples, small...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".dmir")
		loaded[name] = program.Load(source.New("examples/"+filepath.Base(path), string(text)), program.Options{})
	}
	const trace = "../../../testdata/traced/.dmir/traces/step"
	text, err := os.ReadFile(trace + ".mlir")
	if err != nil {
		t.Fatal(err)
	}
	loaded["traced"] = program.Load(source.New("step.mlir", string(text)), program.Options{})
	description, err := os.ReadFile(trace + ".json")
	if err != nil {
		t.Fatal(err)
	}
	sources := &attribution.Sources{}
	if sources.Trace, err = attribution.ReadTrace(trace+".json", description); err != nil {
		t.Fatal(err)
	}
	loaded["deep"] = program.Load(source.New("deep.dmir", transformer(278)), program.Options{})
	for name, p := range loaded {
		for _, kind := range report.KindsOf(p, "") {
			d, err := report.Build(p, kind, "", report.Options{Sources: sources, Patterns: pictures})
			if err != nil {
				t.Fatal(name, err)
			}
			write(name+"."+kind, d)
			if (kind == report.KindGraph && slices.Contains([]string{"bert_encoder", "control", "empty"}, name)) || (kind != report.KindGraph && name == "moe") || name == "traced" {
				hostile(reflect.ValueOf(&d).Elem())
				d.Kind = kind
				write(name+"."+kind+".hostile", d)
			}
		}
	}
	for name, versions := range map[string][2]string{
		"bert":  {"bert_encoder", "bert_encoder_fused"},
		"same":  {"ffn", "ffn"},
		"apart": {"ffn", "control"},
	} {
		d, err := report.Build(loaded[versions[1]], report.KindDiff, "", report.Options{Old: loaded[versions[0]]})
		if err != nil {
			t.Fatal(name, err)
		}
		write(name+".diff", d)
	}
	for name, d := range plansPages(t) {
		if name == "hostile.plans" {
			hostile(reflect.ValueOf(&d).Elem())
			d.Kind = report.KindPlans
		}
		write(name, d)
	}
}

// pictures are a diagonal for each sparse argument, and one that could not be drawn.
func pictures(fn *ir.Func) (out []report.PatternAt) {
	for _, v := range fn.Args {
		if t := v.Tensor(); t != nil && t.Format != nil {
			p := report.Pattern{Name: v.Name, Kind: report.PatternArgument, Type: t.String(), From: "drawn: band", Shape: []int64{64, 64}, Stored: 36, Down: 8, Across: 8, Counts: make([]int64, 64)}
			for i := range 8 {
				p.Counts[9*i] = int64(i + 1)
			}
			out = append(out, report.PatternAt{Pattern: p, Span: v.Span})
		}
	}
	return append(out, report.PatternAt{Pattern: report.Pattern{Name: "%open", Kind: report.PatternArgument, Type: "tensor<?x?xf32, #dm.csr<nnz = e>>", From: "drawn: uniform", Reason: "a size is no number: bind it"}})
}

// transformer is a program of so many layers, 18 nodes each, of which later
// ones use what the early ones made.
func transformer(layers int) string {
	var b strings.Builder
	b.WriteString("!t = tensor<8x512x1024xf16>\n!w = tensor<1024x1024xf16>\n!u = tensor<8x512x4096xf16>\n!wu = tensor<1024x4096xf16>\n!wd = tensor<4096x1024xf16>\n!n = tensor<1024xf16>\n!s = tensor<8x512x512xf16>\n")
	b.WriteString("func.func @deep(%x0: !t, %w: !w, %wu: !wu, %wd: !wd, %s: !n, %b: !n) -> !t {\n")
	for i := range layers {
		in, skip := fmt.Sprint(i), fmt.Sprint(i)
		if i > 140 && i%7 == 0 {
			skip = fmt.Sprint(layers - i)
		}
		r := strings.NewReplacer("#i", in, "#o", fmt.Sprint(i+1), "#s", skip)
		_, _ = r.WriteString(&b, `  %n#i = dm.layer_norm %x#i, %s, %b : (!t, !n, !n) -> !t
  %q#i = dm.einsum "bln,nm->blm" %n#i, %w : (!t, !w) -> !t
  %k#i = dm.einsum "bln,nm->blm" %n#i, %w : (!t, !w) -> !t
  %v#i = dm.einsum "bln,nm->blm" %n#i, %w : (!t, !w) -> !t
  %s#i = dm.einsum "bln,bmn->blm" %q#i, %k#i : (!t, !t) -> !s
  %p#i = dm.softmax %s#i, dim = 2 : !s
  %g#i = dm.einsum "blm,bmn->bln" %p#i, %v#i : (!s, !t) -> !t
  %o#i = dm.einsum "bln,nm->blm" %g#i, %w : (!t, !w) -> !t
  %r#i = dm.add %o#i, %x#s : !t
  %m#i = dm.layer_norm %r#i, %s, %b : (!t, !n, !n) -> !t
  %h#i = dm.einsum "bln,nu->blu" %m#i, %wu : (!t, !wu) -> !u
  %a#i = dm.kernel -> !u {
    %0 = dm.gelu %h#i : !u
    %1 = dm.mul %0, %h#i : !u
    %2 = dm.tanh %1 : !u
    dm.yield %2 : !u
  }
  %d#i = dm.einsum "blu,un->bln" %a#i, %wd : (!u, !wd) -> !t
  %e#i = dm.transpose %r#i, dims = [0, 1, 2] : !t
  %x#o = dm.add %d#i, %e#i : !t
`)
	}
	fmt.Fprintf(&b, "  return %%x%d : !t\n}\n", layers)
	return b.String()
}

// hostile puts markup into every text of the data.
func hostile(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(`</script><img src=x onerror="document.title='broken'"><b>` + v.String() + "\u2028")
	case reflect.Struct:
		for i := range v.NumField() {
			hostile(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			hostile(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			hostile(v.Elem())
		}
	}
}
