package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dmir/analysis/lint"
	"dmir/analysis/program"
	"dmir/syntax/source"
	"dmir/testkit/commented"
	"dmir/testkit/randprog"
)

var kept = regexp.MustCompile("// (keep|inside).*")

// The fixes of a program whose every statement has comments leave each comment
// at its statement, in the examples and in random programs.
func TestFixesKeepCommentsWithTheirStatements(t *testing.T) {
	texts := map[string]string{}
	for seed := range uint64(24) {
		texts[fmt.Sprint("random ", seed)] = kept.ReplaceAllString(randprog.Messy(seed, 4+int(seed)), "")
	}
	files, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples")
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) < 8000 {
			texts[filepath.Base(f)] = string(text)
		}
	}
	applied := 0
	for name, text := range texts {
		text = commented.Program(text)
		load := func(s *source.File) *program.Program { return load(t, s) }
		p := load(source.New("p.dmir", text))
		for _, unsafe := range []bool{false, true} {
			fixed := lint.FixAll(t.Context(), p, lint.Options{}, unsafe, load)
			applied += len(fixed.Applied)
			if err := commented.Check(text, fixed.Src.Text()); err != nil {
				t.Errorf("%s: %v\n%s", name, err, fixed.Src.Text())
			}
			// The same with other line ends, which stay.
			dos := lint.FixAll(t.Context(), load(source.New("p.dmir", strings.ReplaceAll(text, "\n", "\r\n"))), lint.Options{}, unsafe, load)
			if got := dos.Src.Text(); got != strings.ReplaceAll(fixed.Src.Text(), "\n", "\r\n") {
				t.Errorf("%s with CRLF: %q", name, got)
			}
		}
	}
	if applied < 50 {
		t.Errorf("only %d fixes were applied", applied)
	}
}

// A chain that becomes one kernel keeps its names and its headings.
func TestFusedChainKeepsNamesAndHeadings(t *testing.T) {
	const before = `func.func @f(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // above a
  %a = dm.add %x, %x : tensor<64x64xf32> // behind a

  // second section

  %b = dm.exp %a : tensor<64x64xf32>
  // above c
  %c = dm.relu %b : tensor<64x64xf32> // behind c
  func.return %c : tensor<64x64xf32>
}
`
	const want = `func.func @f(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = dm.kernel -> tensor<64x64xf32> {
    // above a
    %a = dm.add %x, %x : tensor<64x64xf32> // behind a
    %b = dm.exp %a : tensor<64x64xf32>
    // above c
    %c = dm.relu %b : tensor<64x64xf32> // behind c
    dm.yield %c : tensor<64x64xf32>
  }

  // second section

  func.return %c : tensor<64x64xf32>
}
`
	load := func(s *source.File) *program.Program { return load(t, s) }
	fixed := lint.FixAll(t.Context(), load(source.New("f.dmir", before)), lint.Options{}, false, load)
	if got := fixed.Src.Text(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
