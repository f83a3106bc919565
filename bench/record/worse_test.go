package record

import (
	"fmt"
	"strings"
	"testing"
)

func TestWorse(t *testing.T) {
	const earlier = `{"cpu": "A", "cores": 2, "rows": [
 {"ops": 100, "shape": "one", "bytes": 7, "dmir": {"open": {"p50_ms": 10, "max_ms": 50}, "rss_mb": 20}, "peer": {"open": {"p50_ms": 5}}, "ratios": {"open": 2}},
 {"ops": 200, "shape": "one", "dmir": {"open": {"p50_ms": 20}, "rss_mb": 20}, "others": {"torch": {"ratio_of_best": 1.2, "best_ms": 3}}}]}`
	for _, c := range []struct {
		name    string
		replace []string
		same    bool
		want    string
	}{
		{"equal", nil, true, ""},
		{"a time", []string{`"p50_ms": 10`, `"p50_ms": 13`}, true, "ops 100, shape one: dmir/open/p50_ms 1.30"},
		{"within the tolerance", []string{`"p50_ms": 10`, `"p50_ms": 10.9`}, true, ""},
		{"better", []string{`"p50_ms": 20`, `"p50_ms": 2`}, true, ""},
		{
			"the worst first",
			[]string{`"p50_ms": 20`, `"p50_ms": 30`, `"rss_mb": 20}, "peer"`, `"rss_mb": 50}, "peer"`},
			true,
			"ops 100, shape one: dmir/rss_mb 2.50\nops 200, shape one: dmir/open/p50_ms 1.50",
		},
		{"the peer is slower", []string{`"p50_ms": 5}`, `"p50_ms": 50}`, `"best_ms": 3`, `"best_ms": 30`}, true, ""},
		{"what is not compared", []string{`"max_ms": 50`, `"max_ms": 500`, `"bytes": 7`, `"bytes": 70`}, true, ""},
		{"our ratio", []string{`"open": 2`, `"open": 3`}, true, "ops 100, shape one: ratios/open 1.50"},
		{"their ratio", []string{`"ratio_of_best": 1.2`, `"ratio_of_best": 0.6`}, true, "ops 200, shape one: others/torch/ratio_of_best 2.00"},
		{"another machine", []string{`"A"`, `"B"`, `"p50_ms": 10`, `"p50_ms": 13`, `"open": 2`, `"open": 3`}, false, "ops 100, shape one: ratios/open 1.50"},
		{"another row", []string{`"ops": 100`, `"ops": 101`, `"p50_ms": 10`, `"p50_ms": 13`}, true, ""},
	} {
		worse, same, err := Worse([]byte(earlier), []byte(strings.NewReplacer(c.replace...).Replace(earlier)))
		if err != nil || same != c.same {
			t.Errorf("%s: same %v, %v", c.name, same, err)
		}
		var got []string
		for _, w := range worse {
			got = append(got, fmt.Sprintf("%s: %s %.2f", w.Row, w.Figure, w.By))
		}
		if s := strings.Join(got, "\n"); s != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, s, c.want)
		}
	}
	if _, _, err := Worse([]byte(earlier), []byte("{")); err == nil {
		t.Error("a file that is no JSON is compared")
	}
}
