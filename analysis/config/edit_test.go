package config

import (
	"strings"
	"testing"

	"dmir/syntax/source"
)

// In the texts | is the cursor.
func TestComplete(t *testing.T) {
	rules := []Choice{{"DM201", "fusible-into-producer: text"}}
	cases := []struct{ text, want, absent string }{
		{"|", "target = \"\" bind. lint. machines.", "select"},
		{"target = |", `"h200"`, "rule"},
		{"target = \"h2|\"", "h200", `"h200"`},
		{"target = \"h200\"\nt|", "bind. lint.", "target"},
		{"[|", "bind lint machines.", "target"},
		{"[machines.|", "", "target"},
		{"[machines.mine.|", "tensor_core vector ceilings", "sms"},
		{"[lint]\n|", "select = [] ignore = []", "target"},
		{"[lint]\nselect = [|", `"DM201"`, "h200"},
		{"[lint]\nselect = [\n  \"DM1\",\n  \"|", "DM201", `"DM201"`},
		{"[lint]\nselect = [\n  \"DM1\",\n]\n|", "ignore = []", "select"},
		{"lint.|", "select = []", "target"},
		{"[machines.mine]\nbandwidth = \"1 TB/s\"\n|", `memory = "GB" sms =`, " bandwidth"},
		{"[machines.mine]\nbase = |", `"a100-80"`, "DM201"},
		{"[machines.mine]\ncpu = |", "true false", "h200"},
		{"[machines.mine.tensor_core]\n|", `bf16 = "TFLOP/s"`, "sms"},
		{"[unknown]\n|", "", "target"},
		{"# targ|", "", "target"},
	}
	for _, c := range cases {
		off := strings.Index(c.text, "|")
		text := strings.Replace(c.text, "|", "", 1)
		found, span := Complete(source.New("dmir.toml", text), off, rules)
		var got []string
		for _, f := range found {
			got = append(got, f.Text)
		}
		all := strings.Join(got, " ")
		for _, want := range strings.Split(c.want, " ") {
			if !strings.Contains(all, want) {
				t.Errorf("%q: %q is not among %q", c.text, want, all)
			}
		}
		if c.want == "" && all != "" || strings.Contains(all, c.absent) {
			t.Errorf("%q: completions %q", c.text, all)
		}
		if span.End != off || span.Start > off {
			t.Errorf("%q: span %v", c.text, span)
		}
	}
}

func TestHover(t *testing.T) {
	for text, want := range map[string]string{
		"tar|get = \"h200\"":                       "`target`: string",
		"[machines.mine]\n|bandwidth = \"1 TB/s\"": "`machines.mine.bandwidth`: a quantity in B/s",
		"[li|nt]":            "Which lint rules",
		"lint.sel|ect = []":  "The rules that apply",
		"target = \"h2|00\"": "",
		"# tar|get":          "",
		"tu|rget = 1":        "",
		"[machines.mine.tensor_core]\nbf|16 = \"1\"": "a quantity in FLOP/s",
	} {
		got, _ := Hover(source.New("dmir.toml", strings.Replace(text, "|", "", 1)), strings.Index(text, "|"))
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Every place of any text has an answer without a panic.
func FuzzComplete(f *testing.F) {
	f.Add("[machines.a]\nselect = [\n\"", 5)
	f.Fuzz(func(t *testing.T, text string, off int) {
		src := source.New("dmir.toml", text)
		off = min(max(off, 0), src.Len())
		Complete(src, off, nil)
		Hover(src, off)
	})
}
