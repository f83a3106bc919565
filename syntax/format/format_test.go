package format_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/syntax/format"
	"dmir/syntax/lex"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

var update = flag.Bool("update", false, "write what the formatter gives into the golden files")

func formatted(text string) string { return format.File(parse.File(source.New("test.mlir", text))) }

// TestGolden formats the file "in" of each archive in testdata and compares the
// result with its file "out". In both, "␍" stands for a carriage return, "⇥" for
// a tab, "¤" for a byte order mark, and a "␠" at the end of a line for a blank.
func TestGolden(t *testing.T) {
	marks := strings.NewReplacer("␍", "\r", "⇥", "\t", "␠", " ", "¤", source.ByteOrderMark)
	shown := strings.NewReplacer("\r", "␍", "\t", "⇥", " \n", "␠\n", source.ByteOrderMark, "¤")
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{}
			for _, f := range a.Files {
				files[f.Name] = marks.Replace(string(f.Data))
			}
			in, want := files["in"], files["out"]
			got := formatted(in)
			if *update {
				a.Files = []txtar.File{a.Files[0], {Name: "out", Data: []byte(shown.Replace(got))}}
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("not as in the golden file:\n%s", format.Diff(path, want, got))
			}
			hold(t, in)
		})
	}
}

// hold checks what has to be true of formatting a text. For any text: what is
// visible stays, and the parser cuts it into the same tokens. For one without
// syntax errors also: the tree stays, and formatting again changes nothing. (Where
// a bracket or a brace is missing, the parser guesses from the indentation where
// it belongs, so that moving a line may move the guess.)
func hold(t *testing.T, text string) {
	t.Helper()
	f := parse.File(source.New("test.mlir", text))
	once := format.File(f)
	again := parse.File(source.New("test.mlir", once))
	twice := format.File(again)
	for _, c := range []struct{ times, text string }{{"once", once}, {"twice", twice}} {
		if a, b := visible(text), visible(c.text); a != b {
			t.Errorf("formatting %s changes more than white space:\n%s", c.times, format.Diff("visible", a, b))
		}
		if d := tokenDiff(parsed(text), parsed(c.text)); d != "" {
			t.Errorf("formatting %s %s", c.times, d)
		}
	}
	if len(errorsOf(f)) > 0 {
		return
	}
	if twice != once {
		t.Errorf("formatting twice differs from once:\n%s", format.Diff("test.mlir", once, twice))
	}
	if a, b := dump(f), dump(again); a != b {
		t.Errorf("formatting changes the tree:\n%s", format.Diff("tree", a, b))
	}
}

// parsed are the tokens of a text as the parser cuts it.
func parsed(text string) []string {
	var out []string
	for _, s := range lex.Tokens(text, source.Span{End: len(text)}) {
		word := text[s.Start:s.End]
		switch {
		case strings.HasPrefix(word, "{-#"): // laid out inside
			word = visible(word)
		case strings.ContainsRune(word, '"'): // a string without end reaches to that of its line
			word = strings.TrimRight(word, " \t\r")
		}
		out = append(out, word)
	}
	return out
}

// visible is text without white space.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '\t' || r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

func FuzzFile(f *testing.F) {
	for _, src := range accepted(f) {
		f.Add(src.Text())
	}
	paths, _ := filepath.Glob("testdata/*.txtar")
	for _, path := range paths {
		if a, err := txtar.ParseFile(path); err == nil {
			f.Add(string(a.Files[0].Data))
		}
	}
	for _, seed := range []string{
		"module{func.func @f(%a:i32)->i32{return %a:i32}}",
		"\"a.b\"()({^bb0(%x:i32):\"a.c\"()[^bb0]:()->()},{}){k=[1:i32]}:()->()",
		"\ufeff  }\n\ufeff// -----\n",
		"// a\r\n// -----\r\n!t = tuple<i32>\r\n",
		"x.y %a { x.z } else // c\n { }\n}}",
		"%0 = #a<#b<",
		"%0 = \"t.op\"()< {a!=1}> : () -> i32",
		"func.func @f( // c\n%a: i32)\n\n\n{ x.y\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { hold(t, text) })
}
