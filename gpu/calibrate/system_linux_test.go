package calibrate

import "testing"

func TestSystem(t *testing.T) {
	for text, want := range map[string]int64{"48K": 48 * kib, "32M": 32 * mib, "100": 100, "": 0, "K": 0, "-1K": 0, "99999999999G": 0} {
		if got := size(text); got != want {
			t.Errorf("%q: %d bytes, want %d", text, got, want)
		}
	}
	for list, want := range map[string]int{"0": 1, "0-3": 4, "0,16": 2, "0-3,8-11": 8, "": 0, "x": 0, "3-1": 1} {
		if got := shared(list); got != want {
			t.Errorf("%q: %d processors, want %d", list, got, want)
		}
	}
	if p := system(); p.memory <= 0 {
		t.Error("the memory is not known")
	}
}
