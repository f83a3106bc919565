package op_test

import (
	"fmt"
	"testing"

	"dmir/dialect/op"
)

func TestTripCount(t *testing.T) {
	counts := func(elem, start, condition, bound, step, more string) string {
		return fmt.Sprintf(`func.func @f(%%n: tensor<%[1]s>) {
  %%start = dm.constant dense<%[2]s> : tensor<%[1]s>
  %%last = dm.constant dense<%[4]s> : tensor<%[1]s>
  %%one = dm.constant dense<1> : tensor<%[1]s>
  %%r:3 = dm.while %%start, %%last, %%one%[6]s : (tensor<%[1]s>, tensor<%[1]s>, tensor<%[1]s>) -> (tensor<%[1]s>, tensor<%[1]s>, tensor<%[1]s>) {
  ^bb0(%%i: tensor<%[1]s>, %%end: tensor<%[1]s>, %%k: tensor<%[1]s>):
    %%bound = dm.constant dense<%[4]s> : tensor<%[1]s>
    %%more = dm.compare %[3]s : (tensor<%[1]s>, tensor<%[1]s>) -> tensor<i1>
    dm.yield %%more : tensor<i1>
  } do {
  ^bb0(%%i: tensor<%[1]s>, %%end: tensor<%[1]s>, %%k: tensor<%[1]s>):
    %%step = dm.constant dense<3> : tensor<%[1]s>
    %%next = %[5]s : tensor<%[1]s>
    %%twice = dm.add %%k, %%k : tensor<%[1]s>
    dm.yield %%next, %%end, %%twice : tensor<%[1]s>, tensor<%[1]s>, tensor<%[1]s>
  }
  return
}`, elem, start, condition, bound, step, more)
	}
	const up, down = "dm.add %i, %step", "dm.sub %i, %step"
	const unknown = -1
	cases := []struct {
		elem, start, condition, bound, step, more string
		want                                      int64
	}{
		{"i64", "0", "lt %i, %bound", "9", up, "", 3},
		{"i64", "0", "lt %i, %bound", "10", up, "", 4},
		{"i64", "0", "le %i, %bound", "9", up, "", 4},
		{"i64", "0", "ne %i, %bound", "9", up, "", 3},
		{"i64", "0", "ne %i, %bound", "10", up, "", unknown}, // it wraps around
		{"i64", "9", "eq %i, %bound", "9", up, "", 1},
		{"i64", "0", "eq %i, %bound", "9", up, "", 0},
		{"i64", "0", "gt %bound, %i", "9", "dm.add %step, %i", "", 3},
		{"i64", "9", "gt %i, %bound", "0", down, "", 3},
		{"i64", "9", "ge %i, %bound", "0", down, "", 4},
		{"i64", "9", "lt %i, %bound", "0", up, "", 0},
		{"i64", "0", "lt %i, %bound", "9", down, "", unknown},
		{"i64", "0", "lt %i, %end", "9", up, "", 3}, // carried, and always the same
		{"i64", "0", "lt %i, %last", "9", up, "", 3},
		{"i64", "0", "lt %i, %k", "9", up, "", unknown},
		{"i64", "0", "lt %i, %n", "9", up, "", unknown},
		{"i64", "0", "lt %i, %bound", "9", "dm.add %i, %k", "", unknown},
		{"i64", "0", "lt %i, %bound", "9", "dm.mul %i, %step", "", unknown},
		{"i8", "0", "lt %i, %bound", "127", up, "", unknown}, // 126 + 3 is -127
		{"i8", "0", "lt %i, %bound", "124", up, "", 42},
		{"ui8", "0", "lt %i, %bound", "252", up, "", 84},
		{"ui8", "9", "ge %i, %bound", "0", down, "", unknown},
		{"i64", "0", "lt %i, %bound", "9", up, ", max_trips = 2", 2},
		{"i64", "0", "lt %i, %bound", "9", up, ", max_trips = 7", 3},
		{"f32", "0.0", "lt %i, %bound", "9.0", up, "", unknown},
	}
	for _, c := range cases {
		text := counts(c.elem, c.start, c.condition, c.bound, c.step, c.more)
		_, o := first(t, text, "dm.while")
		n, ok := op.TripCount(o)
		if !ok {
			n = unknown
		}
		if n != c.want {
			t.Errorf("%d trips, want %d\n%s", n, c.want, text)
		}
	}
}
