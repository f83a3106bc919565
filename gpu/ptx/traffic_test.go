package ptx

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Sectors of global memory and passes of shared memory of a warp that reads with a stride, four bytes or sixteen, twice in a loop, and
// passes its values on through shared memory.
func TestTraffic(t *testing.T) {
	const text = `.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 copy_0, .param .u64 copy_1)
{
	.reg .pred %%p<2>;
	.reg .b32 %%r<5>;
	.reg .f32 %%f<5>;
	.reg .b64 %%rd<7>;
	.shared .align 16 .b8 tile[32768];
	ld.param.u64 %%rd1, [copy_0];
	ld.param.u64 %%rd2, [copy_1];
	mov.u32 %%r1, %%tid.x;
	mul.wide.u32 %%rd3, %%r1, %d;
	add.s64 %%rd4, %%rd1, %%rd3;
	mov.u32 %%r2, tile;
	mad.lo.s32 %%r3, %%r1, %d, %%r2;
	mul.wide.u32 %%rd5, %%r1, %d;
	add.s64 %%rd6, %%rd2, %%rd5;
	mov.u32 %%r4, 0;
$again:
	%s
	add.s64 %%rd4, %%rd4, %d;
	add.s32 %%r4, %%r4, 1;
	setp.lt.u32 %%p1, %%r4, 2;
	@%%p1 bra $again;
	ret;
}
`
	const word = `ld.global.nc.f32 %f1, [%rd4];
	st.shared.f32 [%r3], %f1;
	st.global.f32 [%rd6], %f1;`
	const four = `ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd4];
	st.shared.v4.f32 [%r3], {%f1, %f2, %f3, %f4};
	st.global.v4.f32 [%rd6], {%f1, %f2, %f3, %f4};`
	for _, c := range []struct {
		name                       string
		read, shared, write, again int // bytes from a thread to the next, and from a turn to the next
		body                       string
		want                       Traffic
	}{
		{"neighbours", 4, 4, 4, 128, word, Traffic{Read: Moved{8, 8}, Written: Moved{4, 4}, Loads: Moved{8, 8}, Stores: Moved{8, 8}, Shared: Moved{2, 2}}},
		{"fours of neighbours", 16, 16, 16, 512, four, Traffic{Read: Moved{32, 32}, Written: Moved{16, 16}, Loads: Moved{32, 32}, Stores: Moved{32, 32}, Shared: Moved{8, 8}}},
		{"a column", 4096, 128, 4, 128, word, Traffic{Read: Moved{64, 8}, Written: Moved{4, 4}, Loads: Moved{64, 8}, Stores: Moved{8, 8}, Shared: Moved{64, 2}}},
		{"two columns of a sector", 32, 8, 4, 4, word, Traffic{Read: Moved{32, 8}, Written: Moved{4, 4}, Loads: Moved{64, 8}, Stores: Moved{8, 8}, Shared: Moved{4, 2}}},
		{"a sector in two halves", 32, 16, 32, 16, four, Traffic{Read: Moved{32, 32}, Written: Moved{32, 16}, Loads: Moved{64, 32}, Stores: Moved{64, 32}, Shared: Moved{8, 8}}},
		{"one for all", 0, 0, 0, 0, word, Traffic{Read: Moved{1, 1}, Written: Moved{1, 1}, Loads: Moved{2, 2}, Stores: Moved{2, 2}, Shared: Moved{2, 2}}},
	} {
		r := checkText(t, fmt.Sprintf(text, c.read, c.shared, c.write, c.body, c.again), "copy", Launch{Grid: [3]int{1, 1, 1}, Threads: 32})
		if d := cmp.Diff(&c.want, r.Traffic["copy"]); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}
