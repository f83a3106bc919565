package server

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/uri"

	"dmir/analysis/report"
)

// compare returns the data of a comparison.
func (e *editor) compare(u, fn, base, version string) report.Data {
	e.t.Helper()
	raw := new(json.RawMessage)
	e.must("dmir/panelData", fmt.Sprintf(`{"uri":%q,"kind":"diff","function":%q,"base":%s,"version":%q}`, u, fn, quote(base), version), (*jsonrpc2.RawMessage)(raw))
	var answer struct{ Data report.Data }
	if err := json.Unmarshal(*raw, &answer); err != nil {
		e.t.Fatal(err)
	}
	if answer.Data.Diff == nil {
		e.t.Fatalf("no comparison: %s", *raw)
	}
	return answer.Data
}

// committed makes a repository with the files as its only commit.
func committed(t *testing.T, files map[string]string) (addresses map[string]string, git func(...string)) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	addresses = onDisk(t, files)
	dir := pathOf(t, addresses[""])
	git = func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "the first version")
	return addresses, git
}

func pathOf(t *testing.T, address string) string {
	t.Helper()
	u, err := uri.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.FsPath()
}

// separate is ffn without its kernel.
const separate = `func.func @ffn(%x: tensor<8x512x1024xf16>, %w: tensor<1024x4096xf16>, %b: tensor<4096xf16>) -> tensor<8x512x4096xf16> {
  %h = dm.einsum "bln,nu->blu" %x, %w : (tensor<8x512x1024xf16>, tensor<1024x4096xf16>) -> tensor<8x512x4096xf16>
  %s = dm.add %h, %b : (tensor<8x512x4096xf16>, tensor<4096xf16>) -> tensor<8x512x4096xf16>
  %y = dm.relu %s : tensor<8x512x4096xf16>
  return %y : tensor<8x512x4096xf16>
}
`

func values(list []report.Choice) string {
	var out []string
	for _, c := range list {
		out = append(out, c.Value)
	}
	return strings.Join(out, " ")
}

// A document is compared with what is saved, with revisions and with other files,
// and the comparison follows edits, saves and commits.
func TestCompareVersions(t *testing.T) {
	files, git := committed(t, map[string]string{"sub/f.dmir": separate, "sub/g.dmir": ffn})
	u, path := files["sub/f.dmir"], pathOf(t, files["sub/f.dmir"])
	e := connect(t, Options{}, nil)
	e.must("initialize", fmt.Sprintf(`{"processId":null,"rootUri":%q,"capabilities":{},"initializationOptions":{"panels":true}}`, files[""]), nil)
	e.notify("initialized", "{}")
	e.openAs(u, separate)
	for _, base := range []string{"", "saved", "git:HEAD", "HEAD", "main", "main~0", "text"} {
		if d := e.compare(u, "ffn", base, "").Diff; !d.Same || d.Reason != "" || d.New != "sub/f.dmir" {
			t.Errorf("with %q: %+v", base, d)
		}
	}
	d := e.compare(u, "ffn", "git:HEAD", "text").Diff
	if !strings.HasPrefix(d.Old, "HEAD (") || d.Base != "git:HEAD" || d.Version != "text" {
		t.Errorf("%q %q %q", d.Old, d.Base, d.Version)
	}
	for _, want := range []string{"saved text git:HEAD git:", " after-fuse ", " sub/g.dmir"} {
		if got := values(d.Bases); !strings.Contains(got, want) {
			t.Errorf("bases %s lack %s", got, want)
		}
	}
	if !strings.HasPrefix(values(d.Versions), "text after-inline ") || !strings.HasSuffix(d.Bases[3].Label, " the first version") {
		t.Errorf("%s; %+v", values(d.Versions), d.Bases[3])
	}
	// The edit of a text.
	e.notify("textDocument/didChange", fmt.Sprintf(`{"textDocument":{"uri":%q,"version":2},"contentChanges":[{"text":%s}]}`, u, quote(ffn)))
	d = e.compare(u, "ffn", "git:HEAD", "").Diff
	var rows []string
	for _, o := range d.Functions[0].Ops {
		rows = append(rows, fmt.Sprintf("%s %s %d→%d %s", o.Status, o.Op, o.OldPlace.Line, o.Line, o.Note))
	}
	want := "added dm.kernel 0→3 |fused dm.add 3→4 into kernel at line 3|fused dm.relu 4→5 into kernel at line 3"
	if got := strings.Join(rows, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if d := e.compare(u, "", "g.dmir", "").Diff; !d.Same || d.Old != "sub/g.dmir" || d.Base != "g.dmir" {
		t.Errorf("another file: %q %q %v", d.Old, d.Base, d.Same)
	}
	e.openAs(files["sub/g.dmir"], separate)
	if d := e.compare(u, "", "sub/g.dmir", "").Diff; d.Same {
		t.Error("another document is compared as it is on disk")
	}
	// A save and a commit.
	if err := os.WriteFile(path, []byte(ffn), 0o644); err != nil {
		t.Fatal(err)
	}
	if !e.compare(u, "", "saved", "").Diff.Same || e.compare(u, "", "HEAD", "").Diff.Same {
		t.Error("saved, and not committed")
	}
	git("commit", "-q", "-a", "-m", "the second version")
	d = e.compare(u, "", "HEAD", "").Diff
	if !d.Same || !strings.HasSuffix(d.Bases[3].Label, " the second version") || e.compare(u, "", "HEAD~1", "").Diff.Same {
		t.Errorf("committed: %v %+v", d.Same, d.Bases)
	}
}

// Why a version cannot be compared is a sentence in the panel, which still offers the
// others.
func TestCompareNothing(t *testing.T) {
	files, _ := committed(t, map[string]string{"f.dmir": ffn})
	fresh := filepath.Join(pathOf(t, files[""]), "new.dmir")
	if err := os.WriteFile(fresh, []byte(ffn), 0o644); err != nil {
		t.Fatal(err)
	}
	outside := onDisk(t, map[string]string{"f.dmir": ffn})["f.dmir"]
	e := connect(t, Options{}, nil)
	e.initialize("", `{"panels":true}`)
	e.openAs(files["f.dmir"], ffn)
	e.openAs(string(uri.File(fresh)), ffn)
	e.openAs(outside, ffn)
	e.openAs("untitled:u", ffn)
	for _, c := range []struct{ u, base, want string }{
		{files["f.dmir"], "nowhere", `there is no revision "nowhere" in the repository`},
		{files["f.dmir"], "git:--output=x", `"--output=x" does not name a revision`},
		{files["f.dmir"], "git:HEAD:f.dmir", `"HEAD:f.dmir" does not name a revision`},
		{files["f.dmir"], "gone.dmir", "there is no file gone.dmir beside f.dmir or in the workspace"},
		{files["f.dmir"], "../../../../../etc/passwd.dmir", "there is no file"},
		{string(uri.File(fresh)), "HEAD", "new.dmir is not in the revision HEAD"},
		{outside, "HEAD", "f.dmir is in no git repository"},
		{"untitled:u", "saved", "the document was never saved, so there is no version to compare it with"},
		{"untitled:u", "HEAD", "the document was never saved, so there is no version to compare it with"},
	} {
		d := e.compare(c.u, "", c.base, "")
		if !strings.Contains(d.Diff.Reason, c.want) || strings.Contains(d.Diff.Reason, "\n") || d.Diff.Same || len(d.Diff.Functions) > 0 || len(d.Functions) != 1 || len(d.Diff.Bases) < 10 {
			t.Errorf("%s with %s: %q", c.u, c.base, d.Diff.Reason)
		}
	}
	e.notify("dmir/trust", `{"trusted":false}`)
	for _, base := range []string{"HEAD", "after-fuse"} {
		d := e.compare(files["f.dmir"], "", base, "").Diff
		if !strings.Contains(d.Reason, "only in a workspace that is trusted") || base == "after-fuse" && strings.Contains(values(d.Bases), "git:") {
			t.Errorf("without trust, %s: %q %s", base, d.Reason, values(d.Bases))
		}
	}
	t.Setenv("PATH", t.TempDir())
	e.notify("dmir/trust", `{"trusted":true}`)
	if d := e.compare(files["f.dmir"], "", "HEAD", "").Diff; d.Reason != "git is not installed, so f.dmir has no older revision" {
		t.Errorf("without git: %q", d.Reason)
	}
}

// A function is compared with what a pass makes of it, and two passes with each other.
func TestComparePasses(t *testing.T) {
	e := connect(t, Options{Worker: workerCommand("sound")}, nil)
	e.initialize("", `{"panels":true}`)
	e.open(separate)
	d := e.compare(testURI, "", "text", "after-fuse")
	if d.Function != "ffn" || d.Diff.Reason != "" || d.Diff.New != "@ffn after fuse" {
		t.Fatalf("%q %+v", d.Function, d.Diff)
	}
	f := d.Diff.Functions[0]
	if f.Moved.Change == nil || *f.Moved.Change >= 0 {
		t.Errorf("fusing changes what moves by %s", f.Moved.ChangeLabel)
	}
	fused := 0
	for _, o := range f.Ops {
		if o.Status == report.StatusFused && o.Line > 0 && o.OldPlace.Line > 0 {
			fused++
		}
	}
	if fused < 2 {
		t.Errorf("%d ops are paired with those in kernels: %+v", fused, f.Ops)
	}
	if d := e.compare(testURI, "ffn", "after-fuse", "after-schedule").Diff; d.Reason != "" || d.Old != "@ffn after fuse" || d.New != "@ffn after schedule" {
		t.Errorf("%+v", d)
	}
	e.change(2, `{"text":`+quote(strings.ReplaceAll(separate, "dm.relu", "dm.nothing"))+`}`)
	if d := e.compare(testURI, "ffn", "text", "after-fuse").Diff; !strings.Contains(d.Reason, "@ffn") {
		t.Errorf("what cannot be compiled: %+v", d)
	}
}

// The places of another version are shown in it.
func TestRevealVersion(t *testing.T) {
	files, _ := committed(t, map[string]string{"f.dmir": separate, "g.dmir": ffn})
	u := files["f.dmir"]
	e := connect(t, Options{Worker: workerCommand("sound")}, nil)
	e.initialize(`{"workspace":{"textDocumentContent":{}},"window":{"showDocument":{"support":true}}}`, `{"panels":true}`)
	e.openAs(u, ffn)
	for i, c := range []struct{ version, prefix string }{
		{"saved", "dmir:/version/"}, {"git:HEAD", "dmir:/version/"}, {"g.dmir", files["g.dmir"]}, {"after-inline", "dmir:/after-inline/"}, {"text", u},
	} {
		e.command("dmir.reveal", fmt.Sprintf(`{"uri":%q,"version":%q,"function":"ffn","first":2,"last":2}`, u, c.version), new(any))
		var shown struct {
			URI       string
			Selection struct{ Start struct{ Line int } }
		}
		if err := json.Unmarshal([]byte(e.asked("window/showDocument", i+1)), &shown); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(shown.URI, c.prefix) || shown.Selection.Start.Line != 2 {
			t.Errorf("%s: %+v", c.version, shown)
		}
		if strings.HasPrefix(c.prefix, "dmir:/version") {
			if got := e.content(shown.URI); got != separate {
				t.Errorf("%s:\n%s", c.version, got)
			}
		}
	}
	e.command("dmir.reveal", fmt.Sprintf(`{"uri":%q,"version":"nowhere","first":0,"last":0}`, u), new(any))
	var shown struct{ URI string }
	if err := json.Unmarshal([]byte(e.asked("window/showDocument", 6)), &shown); err != nil {
		t.Fatal(err)
	}
	if got := e.content(shown.URI); !strings.HasPrefix(got, "// there is no revision") {
		t.Errorf("a version that is not there: %s", got)
	}
}
