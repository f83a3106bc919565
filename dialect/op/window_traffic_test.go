package op

import (
	"fmt"
	"testing"

	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// The computed number of elements that windows touch is the counted one.
func TestWindowTouches(t *testing.T) {
	cases := 0
	for _, n := range []int64{1, 2, 5, 9, 16} {
		for _, size := range []int64{1, 2, 3, 5} {
			for _, stride := range []int64{1, 2, 3, 5} {
				for _, dilation := range []int64{1, 2, 4} {
					for _, low := range []int64{0, 1, 3} {
						for _, high := range []int64{0, 2} {
							for _, spread := range []int64{1, 2, 3, 6} {
								reach := (n-1)*spread + 1
								free := reach + low + high - (size-1)*dilation - 1
								if free < 0 {
									continue
								}
								cases++
								out := free/stride + 1
								w := &window{Size: []int64{size}, Stride: []int64{stride}, Dilation: []int64{dilation}, Spread: []int64{spread}, Padding: [][2]int64{{low, high}}, Out: []dim.Dim{dim.Const(out)}}
								elements, products := map[int64]bool{}, 0
								for p := range out {
									for j := range size {
										at := p*stride + j*dilation - low
										if at >= 0 && at < reach && at%spread == 0 {
											elements[at] = true
										}
										if at%spread == 0 {
											products++
										}
									}
								}
								if got, want := w.touched(0, dim.Const(n)).String(), fmt.Sprint(len(elements)); got != want {
									t.Errorf("n %d, window %d, stride %d, dilation %d, padding %d %d, elements %d apart: %s elements, want %s", n, size, stride, dilation, low, high, spread, got, want)
								}
								if got, want := w.products(0).String(), fmt.Sprint(products); got != want {
									t.Errorf("n %d, window %d, stride %d, dilation %d, padding %d %d, elements %d apart: %s products, want %s", n, size, stride, dilation, low, high, spread, got, want)
								}
							}
						}
					}
				}
			}
		}
	}
	if cases < 2000 {
		t.Errorf("only %d cases", cases)
	}
}

func TestSeen(t *testing.T) {
	n, m := dim.Sym("n"), dim.Sym("m")
	o := causalOp()
	for _, c := range []struct {
		queries, keys dim.Dim
		bind          map[string]int64
		formula       string
	}{
		{n, n, map[string]int64{"n": 7}, "(n^2 + n)/2"},
		{n, m, map[string]int64{"n": 3, "m": 9}, "m*n - (n^2 - n)/2"},
		{dim.Const(5), dim.Const(8), nil, "30"},
		{dim.Const(8), dim.Const(5), nil, "15"},
		{n, n.Add(dim.Const(4)), map[string]int64{"n": 6}, ""},
	} {
		d := seen(o, c.queries, c.keys)
		if c.formula != "" && d.String() != c.formula {
			t.Errorf("%s queries of %s keys see %s, want %s", c.queries, c.keys, d, c.formula)
		}
		q, _ := c.queries.Eval(c.bind).Int()
		k, _ := c.keys.Eval(c.bind).Int()
		var want int64
		for i := range q {
			for j := range k {
				if j <= i+k-q {
					want++
				}
			}
		}
		if got, ok := d.Eval(c.bind).Int(); !ok || got != want {
			t.Errorf("%d queries of %d keys see %d, want %d", q, k, got, want)
		}
	}
}

func causalOp() *ir.Op {
	return &ir.Op{Name: "dm.attention", Attrs: []types.Named{{Name: "causal", Value: types.Bool(true)}}}
}
