package ptx

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestDump(t *testing.T) {
	files, _ := filepath.Glob("/tmp/ptxw/dump/*.ptx")
	n := 0
	start := time.Now()
	for _, f := range files {
		b, _ := os.ReadFile(f)
		n += len(b)
		m, err := Parse(string(b))
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		text := m.String()
		again, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		if again.String() != text {
			t.Error(f)
		}
		if !sameTokens(string(b), text) {
			t.Errorf("%s: other tokens", f)
		}
	}
	t.Log(len(files), n, time.Since(start))
}

func tokens(t string) (out []string) {
	s := scanner{text: t, line: 1}
	for {
		t, err := s.next()
		if err != nil || t.kind == 0 {
			return out
		}
		out = append(out, t.text)
	}
}

func sameTokens(a, b string) bool {
	x, y := tokens(a), tokens(b)
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			println(i, x[i], y[i])
			return false
		}
	}
	return len(x) == len(y)
}
