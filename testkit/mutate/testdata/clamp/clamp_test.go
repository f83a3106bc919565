package clamp

import "testing"

func TestLow(t *testing.T) {
	if got := Low([][]int{{-1, 2}, {9, 3, 1}}, 4); got != 3 {
		t.Errorf("Low = %d, want 3", got)
	}
}
