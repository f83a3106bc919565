package config

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"dmir/syntax/source"
)

// values of each form, as TOML writes them.
var values = map[string]string{
	"string": `"x y"`, "integer": "3", "number": "1.5", "boolean": "true", "array": "[1]", "object": "{}", "date": "1979-05-27",
}

var ofGo = regexp.MustCompile(`(?i)\bint(64)?\b|float64|struct|\bmap\[|\[\]string|\bbool\b|machine\.|config\.|toml`)

// One mistake is one error, at its own line, in words of TOML: every key of dmir.toml with every form that it does
// not take.
func TestOneMistakeOneError(t *testing.T) {
	tried := 0
	var try func(n node, path []string)
	try = func(n node, path []string) {
		if len(path) > 6 {
			return
		}
		if len(path) > 0 {
			kinds, _ := n.kind()
			for kind, value := range values {
				if kind == kinds[0] && n.unit() == "" && kind != "array" || kinds[0] == "number" && kind == "integer" {
					continue
				}
				tried++
				table, last := strings.Join(path[:len(path)-1], "."), path[len(path)-1]
				text := "# a configuration\n"
				if table != "" {
					text += "[" + table + "]\n"
				}
				text += last + " = " + value + " # the mistake\n"
				line := strings.Count(text, "\n")
				text += "\n[bind]\nn = 4\n"
				if path[0] == "bind" {
					text = strings.TrimSuffix(text, "\n[bind]\nn = 4\n")
				}
				_, ds := Parse(source.New("dmir.toml", text))
				if len(ds) != 1 {
					t.Errorf("%s%d errors: %v", text, len(ds), ds)
					continue
				}
				src := source.New("dmir.toml", text)
				if at, _ := src.Human(ds[0].Span.Start); at != line || ofGo.MatchString(ds[0].Message+ds[0].Help) || strings.Contains(src.Slice(ds[0].Span), "#") {
					t.Errorf("%s%d: %s (%s): %q", text, at, ds[0].Message, ds[0].Help, src.Slice(ds[0].Span))
				}
			}
		}
		for _, c := range n.children() {
			try(c, append(path[:len(path):len(path)], c.name))
		}
		if n.open() {
			try(n.entry(), append(path[:len(path):len(path)], "f32"))
		}
	}
	try(root(), nil)
	if tried < 200 {
		t.Errorf("only %d mistakes", tried)
	}
}

// Mistakes that are found behind the text: a machine that cannot be built, and what names it.
func TestOneMistakeInMachine(t *testing.T) {
	for _, c := range []struct{ text, at, want string }{
		{"target = \"pod\"\n[machines.pod]\nbase = \"h100\"\n[machines.pod.tensor_core]\ntf16 = \"1 GFLOP/s\"", "tf16 = \"1 GFLOP/s\"", "not a floating-point element type"},
		{"target = \"pod\"\nmachines.pod.base = \"h1000\"", `machines.pod.base = "h1000"`, "no machine \"h1000\""},
		{"[plan]\ntarget = \"Pod\"\n[machines.pod]\nbase = \"h100\"\nsms = -1", "sms = -1", "sms is -1, which is negative"},
		{"[machines.pod]\nbase = \"h100\"\nvector = {f16 = \"1 TFLOP/s\", i8 = \"1 TFLOP/s\"}", `vector = {f16 = "1 TFLOP/s", i8 = "1 TFLOP/s"}`, "vector.i8"},
		{"[machines.pod]\ntitle = \"x\"\nvector.f32 = \"1 TFLOP/s\"", "[machines.pod]", "bandwidth is missing"},
		{"[machines.pod]\nbase = \"h100\"\ngrain = \"4 kB\"", `grain = "4 kB"`, "cpu = true"},
		{"[machines.pod]\nbase = \"h100\"\n[machines.pod.links.a]\nbandwidth = \"1 GB/s\"\nlatency = \"1 µs\"\ndevices = 1", "devices = 1", "joins 2 or more"},
		{"[machines.pod]\nbase = \"h100\"\nbandwidth = \"3.2\"", `"3.2"`, `machines.pod.bandwidth: "3.2" has no unit; write "3.2 TB/s", "3.2 GB/s"`},
		{"[machines.pod]\nbase = \"h100\"\nbandwidth = 3.2", "3.2", `"3.2" has no unit`},
		{"[plan]\nmemory = 70", "70", `plan.memory: "70" has no unit; write "70 GB"`},
		{"target.x = 1", "target", "target is a table; it is a text in quotes"},
		{"[[machines]]\nbase = \"h100\"", "machines", "machines is a list of tables"},
		{"lint = {select = [\"DM201\", 3]}", "3", "lint.select is a list with an integer"},
		{"bind = {n = -1}", "bind = {n = -1}", "a size is 0 or more"},
	} {
		src := source.New("dmir.toml", c.text)
		_, ds := Parse(src)
		got := ""
		for _, d := range ds {
			got += fmt.Sprintf("%q: %s\n", src.Slice(d.Span), d.Message)
		}
		if len(ds) != 1 || src.Slice(ds[0].Span) != c.at || !strings.Contains(ds[0].Message, c.want) {
			t.Errorf("%s\n%swant %q: %s", c.text, got, c.at, c.want)
		}
	}
}
