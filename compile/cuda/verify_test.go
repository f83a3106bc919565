package cuda

import (
	"strings"
	"testing"
)

// Names in the text of a kernel, and which of them are used where nothing declares them.
func TestUndefined(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"parameters and variables", "const float t1 = dm::wide(x[i]); y.store(i, t1);", "i i"},
		{"a loop's variable", "for (dm::i32 k1 = 0; k1 < 4; k1++) { y.store(k1, 1.0f); }", ""},
		{"a loop's variable behind it", "for (dm::i32 k1 = 0; k1 < 4; k1++) { } y.store(k1, 1.0f);", "k1"},
		{"a loop without braces", "float f1 = 0.0f; for (int p = 1; p < 4; p++) f1 = f1 + x[p]; y.store(p, f1);", "p"},
		{"what a block declared", "if (true) { const dm::i32 col = 1; } y.store(col, 0.0f);", "col"},
		{"shared memory and vectors", "DM_SHARED(float, scratch_f32, 32);\nconst dm::Vec<dm::f16, 8> v1[] = {x.template load<8>(0), x.template load<8>(8)};\ndm::Vec<float, 4> out1[2]; out1[0][1] = dm::wide(v1[0][1]) + scratch_f32[0];", ""},
		{"conditions and casts", "const dm::i64 i = dm::i64(dm::block()) * 256; if (i >= 8) return; float t2; if (i < 4 && !b) { t2 = 1.0e-5f; } else { t2 = x[i]; }", "b"},
		{"a name in a comment", "// row\ny.store(0, 1.0f);", ""},
		{"before its declaration", "y.store(t1, 0.0f); const dm::i32 t1 = 3;", "t1"},
	} {
		l := launch{body: c.body, params: []param{{name: "x"}, {name: "y"}}}
		var got []string
		for _, m := range undefined(&l) {
			got = append(got, strings.Fields(m)[2])
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
}
