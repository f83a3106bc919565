package schedule_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/base/work"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/pipeline"
	"dmir/compile/schedule"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// reductions are n sums over devices, of each of which a sum is kept.
func reductions(n, size int, attrs string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "dm.mesh @m {data = 2}\nfunc.func @f(%%x: tensor<%dxf32>) -> (", size)
	types := strings.Repeat(", tensor<f32>", n)[2:]
	fmt.Fprintf(&b, "%s) attributes {dm.mesh = @m%s} {\n", types, attrs)
	var results []string
	for i := range n {
		fmt.Fprintf(&b, "  %%c%[1]d = dm.constant dense<%[1]d.5> : tensor<f32>\n  %%a%[1]d = dm.mul %%x, %%c%[1]d : (tensor<%[2]dxf32>, tensor<f32>) -> tensor<%[2]dxf32>\n", i, size)
		fmt.Fprintf(&b, "  %%r%[1]d = dm.all_reduce max %%a%[1]d, axes = [\"data\"] : tensor<%[2]dxf32>\n  %%s%[1]d = dm.reduce add %%r%[1]d, dims = [0] : (tensor<%[2]dxf32>) -> tensor<f32>\n", i, size)
		results = append(results, fmt.Sprintf("%%s%d", i))
	}
	fmt.Fprintf(&b, "  return %s : %s\n}", strings.Join(results, ", "), types)
	return b.String()
}

// Collectives whose latency is most of their time become one, but where the function may not hold all their values at once.
func TestBuckets(t *testing.T) {
	for _, c := range []struct {
		name  string
		text  string
		calls int // of collectives
	}{
		{"small ones", reductions(4, 1000, ""), 1},
		{"large ones", reductions(4, 50_000_000, ""), 4},
		{"a limit that all together keep", reductions(4, 1000, ", dm.max_peak = \"40000 B\""), 1},
		{"a limit that each by itself keeps", reductions(4, 1000, ", dm.max_peak = \"28000 B\""), 4},
	} {
		u := passtest.Unit(t, c.text, "f", nil)
		u.Options.Devices = pass.AllDevices
		if err := pass.Run(u, pipeline.Until(nil, "schedule"), nil); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		calls, values := 0, 0
		for _, o := range u.Func.Body.Ops {
			if members := op.Bucket(o); members != nil {
				calls++
				values += len(members)
			} else if o.Name == op.AllReduce {
				calls++
				values++
			}
		}
		if calls != c.calls || values != 4 {
			t.Errorf("%s: %d values in %d exchanges, want 4 in %d", c.name, values, calls, c.calls)
		}
	}
}

// What the pass visits grows with the collectives, times their logarithm.
func TestBucketsOfManyCollectives(t *testing.T) {
	visits := func(n int) int {
		u := passtest.Unit(t, reductions(n, 100, ""), "f", nil)
		u.Options.Devices, u.Work = pass.AllDevices, &work.Counts{}
		if err := pass.Run(u, []pass.Pass{schedule.Buckets()}, nil); err != nil {
			t.Fatal(err)
		}
		found := 0
		ir.Walk(u.Func.Body.Ops, func(o *ir.Op) bool {
			found += len(op.Bucket(o))
			return true
		})
		if found < n-1 { // the first begins at once
			t.Errorf("%d of %d collectives are exchanged with others", found, n)
		}
		return u.Work.Take()["buckets"] / n
	}
	if few, many := visits(20), visits(320); many > 2*few || few == 0 {
		t.Errorf("%d visits for each collective, of 16 times as many %d", few, many)
	}
}
