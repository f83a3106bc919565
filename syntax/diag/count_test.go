package diag

import "testing"

// TestWords holds how messages count and list.
func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Count(0, "result"), "no results"},
		{Count(1, "result"), "1 result"},
		{Count(2, "result"), "2 results"},
		{List(nil), ""},
		{List([]string{"a"}), "a"},
		{List([]string{"a", "b"}), "a and b"},
		{List([]string{"a", "b", "c"}), "a, b and c"},
		{Ranges(nil), ""},
		{Ranges([]int{7}), "7"},
		{Ranges([]int{3, 4, 5, 9}), "3–5, 9"},
		{Ranges([]int{1, 3, 4}), "1, 3–4"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
