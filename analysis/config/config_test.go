package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/syntax/source"
)

func TestParse(t *testing.T) {
	cases := []struct {
		name, text string
		want       []string // "line:col code message | help", the help cut at its first ";"
	}{
		{"everything", "target = \"box\"\n[bind]\nn = 512\n[lint]\nselect = [\"DM2\"]\n[machines.box]\nbase = \"h200\"\nbandwidth = \"3 TB/s\"\n", nil},
		{"empty", "", nil},
		{"misspelt key", "traget = \"h200\"\n", []string{`1:1 DM903 unknown key "traget" | did you mean "target"? the keys here are target, bind, f32_products, lint, traces, plan, machines`}},
		{"misspelt table", "[lint]\nselct = []\n", []string{`2:1 DM903 unknown key "lint.selct" | did you mean "select"? the keys here are select, ignore, hints`}},
		{
			"misspelt key of a machine", "[machines.box]\nbase = \"h200\"\nbandwith = 3e12\n",
			[]string{`3:1 DM903 unknown key "machines.box.bandwith" | did you mean "bandwidth"? the keys here are base, like, title, source, cpu, arch, bandwidth, memory, l2, shared_memory, sms, launch_latency, clock, dependent_latency, stream_latency, memory_latency, l2_bandwidth, host_link, peer_link, tensor_core, vector, links, assumed, ceilings, read_bandwidth, random_bandwidth, random_rows_bandwidth, grain, call_latency, mispredict, caches, ops, rows, products`},
		},
		{"no TOML", "target = = 3\n", []string{`1:10 DM902 unexpected character U+003D '=' at start of value | correct the line`}},
		{"twice", "target = \"h200\"\ntarget = \"h100\"\n", []string{`2:1 DM902 key target is already defined | correct the line`}},
		{"wrong kind", "[bind]\nn = \"many\"\n", []string{`2:5 DM902 bind.n is a text in quotes; it is an integer | write n = 1`}},
		{"wrong kind of a word", "target = 3\n", []string{`1:10 DM902 target is an integer; it is a text in quotes | write target = "…"`}},
		{"wrong unit", "[machines.box]\nbandwidth = \"3 TBs\"\n", []string{`2:13 DM902 machines.box.bandwidth: "3 TBs" is not a quantity in B/s; write for example "4.8 TB/s" | correct the line`}},
		{"negative size", "[bind]\nn = -1\n", []string{`2:1 DM904 n is -1; a size is 0 or more | correct the value`}},
		{
			"unknown machine", "target = \"h2000\"\n",
			[]string{`1:1 DM904 there is no machine "h2000" | did you mean h200? describe others in dmir.toml, under [machines.NAME]`},
		},
		{"a plan", "[plan]\ndevices = 64\ntarget = \"dgx-h100\"\nmemory = \"70 GB\"\n", nil},
		{
			"no plan", "[plan]\ndevices = -1\ntarget = \"dgx-h10\"\n",
			[]string{`2:1 DM904 -1 is no number of devices | correct the value`, `3:1 DM904 there is no machine "dgx-h10" | did you mean dgx-h100, dgx-a100? describe others in dmir.toml, under [machines.NAME]`},
		},
		{"machine without bandwidth", "[machines.box]\nsms = 3\n", []string{`1:1 DM904 machine box: bandwidth is missing; write for example bandwidth = "4.8 TB/s" | correct the value`}},
		{"machine on nothing", "[machines]\nbox.base = \"h20x\"\n", []string{`2:1 DM904 machine box: there is no machine "h20x" to build on; did you mean h20, h200? | correct the value`}},
		{"not text", "\xff\xfe\x00", []string{`1:1 DM902 invalid character at start of key: U+00FF 'ÿ' | correct the line`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			src := source.New("dmir.toml", c.text)
			_, diags := Parse(src)
			var got []string
			for _, d := range diags {
				line, col := src.Human(d.Span.Start)
				help, _, _ := strings.Cut(d.Help, ";")
				got = append(got, fmt.Sprintf("%d:%d %s %s | %s", line, col, d.Code, d.Message, help))
			}
			if g, w := strings.Join(got, "\n"), strings.Join(c.want, "\n"); g != w {
				t.Errorf("got\n%s\nwant\n%s", g, w)
			}
		})
	}
}

func TestNearestFileWins(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(dir, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(root, "target = \"a100-80\"\n[bind]\nn = 1\n")
	if c, _, diags := ForFile(filepath.Join(deep, "x.dmir")); c.Target != "a100-80" || c.Bind["n"] != 1 || len(diags) != 0 {
		t.Errorf("from above: %+v %v", c, diags)
	}
	write(deep, "[machines.Box]\nbase = \"h100\"\nmemory = \"1 TB\"\n")
	c, src, diags := ForFile(filepath.Join(deep, "x.dmir"))
	if c.Target != "" || len(c.Bind) != 0 || len(diags) != 0 || src == nil {
		t.Errorf("nearest: %+v %v", c, diags)
	}
	m, ok := c.Machine("box")
	if !ok || m.Memory != 1e12 || m.Bandwidth != 3.35e12 {
		t.Errorf("machine: %+v", m)
	}
	if m, _ := c.Machine(""); m.Name != "h200" {
		t.Errorf("default machine: %s", m.Name)
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), make([]byte, maxSize+1), 0o644); err != nil {
		t.Fatal(err)
	}
	_, src, diags := ForFile(filepath.Join(dir, "x.dmir"))
	if src == nil || len(diags) != 1 || diags[0].Code != "DM901" {
		t.Errorf("got %v", diags)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"target = \"h200\"\n[bind]\nn = 3\n", "[machines.a]\nbase = \"h200\"\n[lint]\nignore=[]\nx=1", "a.b.c = {d = 1}\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		src := source.New("dmir.toml", text)
		c, diags := Parse(src)
		if c == nil {
			t.Fatal("no configuration")
		}
		for _, d := range diags {
			if d.Span.Start < 0 || d.Span.End > len(text) || d.Span.Start > d.Span.End || d.Message == "" {
				t.Fatalf("diagnostic out of place: %+v in %d bytes", d, len(text))
			}
		}
	})
}
