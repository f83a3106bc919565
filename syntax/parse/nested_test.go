package parse

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// What an attribute costs grows with its text, however deep or wide it is.
func TestLinearAttributes(t *testing.T) {
	for name, text := range map[string]func(n int) string{
		"nested dictionaries": func(n int) string { return strings.Repeat("{a = ", n) + "1" + strings.Repeat("}", n) },
		"nested, then broken": func(n int) string { return strings.Repeat("{a = ", n) + "=" + strings.Repeat("}", n) },
		"wide dictionary": func(n int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, ", k%d = {}", i)
			}
			return "{a = 1" + b.String() + "}"
		},
		"dictionaries in arrays": func(n int) string { return strings.Repeat("[{a = ", n) + "1" + strings.Repeat("}]", n) },
	} {
		allocated := func(n int) uint64 {
			var before, after runtime.MemStats
			in := text(n)
			runtime.ReadMemStats(&before)
			_, _ = Attr(in)
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		if small, large := allocated(1000), allocated(16_000); large > 40*small+1<<20 {
			t.Errorf("%s: %d bytes for 1,000, %d for 16,000", name, small, large)
		}
	}
	if _, err := Attr(strings.Repeat("{a = ", 16_000) + "1" + strings.Repeat("}", 16_000)); err == nil || !strings.Contains(err.Error(), "nested more than") {
		t.Errorf("error %v", err)
	}
	// Both ways to read a dictionary give one tree, at the depth where they meet.
	for depth := plainNesting - 2; depth <= plainNesting+2; depth++ {
		in := strings.Repeat("{a = ", depth) + "1" + strings.Repeat("}", depth)
		got, err := Attr(in)
		if err != nil {
			t.Fatal(err)
		}
		want, bad := grammarAttr(in)
		if bad != nil {
			t.Fatal(bad)
		}
		for x, y := got, want; ; x, y = x.Entries[0].Value, y.Entries[0].Value {
			if x.Text != y.Text || x.Kind != y.Kind || len(x.Entries) != len(y.Entries) {
				t.Fatalf("%d deep: %q and %q", depth, x.Text, y.Text)
			}
			if len(x.Entries) == 0 {
				break
			}
			if x.Entries[0].VSpan != y.Entries[0].VSpan || x.Entries[0].Span != y.Entries[0].Span {
				t.Fatalf("%d deep: %+v and %+v", depth, x.Entries[0], y.Entries[0])
			}
		}
	}
}
