package record

import "testing"

func TestErrors(t *testing.T) {
	es := ErrorsOf([]int{-3, 1, 2, 10}, func(n int) float64 { return float64(n) / 10 })
	if es.Tenth(5) != 0.3 || es.Tenth(9) != 1 || es.Within(0.2) != 0.5 || es.Within(0.05) != 0 || es.Within(2) != 1 {
		t.Errorf("%v: %g, %g, %g", es, es.Tenth(5), es.Tenth(9), es.Within(0.2))
	}
	if none := ErrorsOf(nil, func(int) float64 { return 1 }); none.Tenth(5) != 0 || none.Within(1) != 0 {
		t.Errorf("errors of nothing: %g, %g", none.Tenth(5), none.Within(1))
	}
}
