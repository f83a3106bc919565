package hostmem

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestOfGroups(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"memory.max":                     "max\n",
		"a/memory.max":                   "3000\n",
		"a/b/memory.max":                 "max\n",
		"memory/memory.limit_in_bytes":   "9223372036854771712\n",
		"memory/x/memory.limit_in_bytes": "2000\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		groups string
		want   []int64
	}{
		{"0::/a/b\n", []int64{3000}},
		{"5:cpu,cpuacct:/x\n4:memory:/x\n", []int64{2000, 9223372036854771712}},
		{"0::/../../gone\n", nil},
		{"nonsense\n", nil},
	} {
		if got := ofGroups(root, []byte(c.groups)); !slices.Equal(got, c.want) {
			t.Errorf("%q: %d, want %d", c.groups, got, c.want)
		}
	}
	if got := Limit(); got < 1<<20 {
		t.Errorf("this process may use %d bytes", got)
	}
}
