package ptx

import "testing"

// layout is a function from an index to an offset as CuTe writes it, shape:stride, of modes whose first is the fastest.
type layout struct{ shape, stride []int }

func (l layout) at(i int) (offset int) {
	for m, n := range l.shape {
		offset += i % n * l.stride[m]
		i /= n
	}
	return offset
}

func (l layout) size() int {
	n := 1
	for _, s := range l.shape {
		n *= s
	}
	return n
}

// fragments are those of CUTLASS (include/cute/atom/mma_traits_sm80.hpp, mma_traits_sm90_gmma.hpp): from (thread, element) to the
// offset in a matrix whose first index is the fastest.
var fragments = []struct {
	name             string // of CUTLASS
	threads, element layout
	rows             int // of the matrix that offsets are in
	place            func(thread, e int) (int, int)
}{
	{"SM80_16x8x16_F32F16F16F32_TN::ALayout", layout{[]int{4, 8}, []int{32, 1}}, layout{[]int{2, 2, 2}, []int{16, 8, 128}}, 16, func(t, e int) (int, int) { return fragmentA(t, e, 2) }},
	{"SM80_16x8x16_F32F16F16F32_TN::BLayout", layout{[]int{4, 8}, []int{16, 1}}, layout{[]int{2, 2}, []int{8, 64}}, 8, func(t, e int) (int, int) {
		k, n := fragmentB(t, e, 2)
		return n, k
	}},
	{"SM80_16x8_Row", layout{[]int{4, 8}, []int{32, 1}}, layout{[]int{2, 2}, []int{16, 8}}, 16, fragmentC},
	{"SM80_16x8x8_F32TF32TF32F32_TN::ALayout", layout{[]int{4, 8}, []int{16, 1}}, layout{[]int{2, 2}, []int{8, 64}}, 16, func(t, e int) (int, int) { return fragmentA(t, e, 1) }},
	{"SM80_16x8x8_F32TF32TF32F32_TN::BLayout", layout{[]int{4, 8}, []int{8, 1}}, layout{[]int{2}, []int{32}}, 8, func(t, e int) (int, int) {
		k, n := fragmentB(t, e, 1)
		return n, k
	}},
	{"GMMA::ALayout_64x16", layout{[]int{4, 8, 4}, []int{128, 1, 16}}, layout{[]int{2, 2, 2}, []int{64, 8, 512}}, 64, func(t, e int) (int, int) { return fragmentA(t, e, 2) }},
	{"GMMA::CLayout_64x256", layout{[]int{4, 8, 4}, []int{128, 1, 16}}, layout{[]int{2, 2, 32}, []int{64, 8, 512}}, 64, fragmentC},
}

// Elements of operands and sums are in the registers of the threads that CUTLASS names for them.
func TestFragments(t *testing.T) {
	for _, c := range fragments {
		for thread := range c.threads.size() {
			for e := range c.element.size() {
				want := c.threads.at(thread) + c.element.at(e)
				if i, j := c.place(thread, e); i+j*c.rows != want {
					t.Fatalf("%s: element %d of thread %d is (%d, %d), not (%d, %d)", c.name, e, thread, i, j, want%c.rows, want/c.rows)
				}
			}
		}
	}
}

// Descriptors of wgmma say what CUTLASS's do (include/cute/arch/mma_sm90_desc.hpp, GmmaDescriptor), and address elements as in the
// canonical layouts with a swizzle of 128 bytes (mma_traits_sm90_gmma.hpp, make_gmma_desc), T elements being 16 bytes:
//
//	K-major:  Swizzle<3,4,3> o ((8,m),(T,2)):((8T,SBO),(1,T))
//	MN-major: Swizzle<3,4,3> o ((T,8,m),(8,k)):((1,T,LBO),(8T,SBO))
func TestDescriptors(t *testing.T) {
	const start, lead, stride = 0x4400, 0x2000, 0x400
	for layoutType, swizzled := range []uint64{0, 128, 64, 32} {
		d := descriptor(start>>4 | lead>>4<<16 | stride>>4<<32 | uint64(layoutType)<<62)
		if d != (matrix{at: start, lead: lead, stride: stride, swizzle: swizzled}) {
			t.Fatalf("layout type %d: %+v", layoutType, d)
		}
	}
	if d := descriptor(5 << 49); d.offset != 5 {
		t.Errorf("base offset %d", d.offset)
	}
	d := matrix{at: start, lead: lead, stride: stride, swizzle: 128}
	for _, c := range []struct {
		name   string
		across bool
		elem   int
		mn, k  layout
	}{
		{"K-major", false, 2, layout{[]int{8, 32}, []int{64, stride / 2}}, layout{[]int{8, 2}, []int{1, 8}}},
		{"K-major bytes", false, 1, layout{[]int{8, 32}, []int{128, stride}}, layout{[]int{16, 2}, []int{1, 16}}},
		{"MN-major", true, 2, layout{[]int{8, 8, 4}, []int{1, 8, lead / 2}}, layout{[]int{8, 2}, []int{64, stride / 2}}},
	} {
		for r := range c.mn.size() {
			for k := range c.k.size() {
				at := uint64(start + (c.mn.at(r)+c.k.at(k))*c.elem)
				at ^= at & (7 << 7) >> 3 // Swizzle<3,4,3>: 3 bits from 4 + 3 on are added to those from 4 on
				if got := d.place(c.across, r, k, c.elem); got != at {
					t.Fatalf("%s: row %d, k %d is at %#x, not %#x", c.name, r, k, got, at)
				}
			}
		}
	}
}
