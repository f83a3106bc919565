package feature_test

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// The marker test detects mistakes in an archive: a comment that is removed, one
// that is written twice, one at a place without an answer, and one whose text is
// changed each make the archive differ from the answers.
func TestMarkersMatchOneToOne(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata", err)
	}
	tried := 0
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range ar.Files {
			lines := strings.SplitAfter(string(f.Data), "\n")
			for at, line := range lines {
				m := markerLine.FindStringSubmatch(line)
				if m == nil {
					continue
				}
				asked := m[2] != "" // by this very comment: without it there is no question
				for what, text := range map[string]string{"left out": "", "written twice": line + line, "changed": strings.TrimRight(line, "\n") + "x\n"} {
					if asked && what != "changed" {
						continue
					}
					with := append(append(append([]string{}, lines[:at]...), text), lines[at+1:]...)
					if tried++; !noticed(t, ar, i, strings.Join(with, "")) {
						t.Errorf("%s: line %d of %s %s goes unnoticed: %s", file, at+1, f.Name, what, line)
					}
				}
			}
			for _, extra := range []string{"//@hint 1.00 MB", "//@diag warning DM201 1-2 nothing", "//@lens Run -> dmir.run", "//@fix DM201 nothing"} {
				if !strings.HasSuffix(f.Name, "ir") {
					continue
				}
				if tried++; !noticed(t, ar, i, string(f.Data)+extra+"\n") {
					t.Errorf("%s: a superfluous %s in %s goes unnoticed", file, extra, f.Name)
				}
			}
		}
		if testing.Short() && tried > 200 {
			break
		}
	}
	t.Log(tried, "faults planted")
}

// noticed reports whether the answers differ from an archive in which one file
// has another text.
func noticed(t *testing.T, ar *txtar.Archive, i int, text string) bool {
	changed := &txtar.Archive{Comment: ar.Comment, Files: append([]txtar.File{}, ar.Files...)}
	changed.Files[i].Data = []byte(text)
	want := string(txtar.Format(changed))
	return string(txtar.Format(answer(t, changed))) != want
}
