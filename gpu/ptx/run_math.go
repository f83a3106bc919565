package ptx

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/x448/float16"
)

func f32(v uint64) float32    { return math.Float32frombits(uint32(v)) }
func bits32(x float32) uint64 { return uint64(math.Float32bits(x)) }

// small is the value of a 16-bit float, or of one of 8 bits.
func small(typ string, v uint64) float32 {
	switch typ {
	case "bf16":
		return f32(v & 0xffff << 16)
	case "e5m2":
		v = v & 0xff << 8
	case "e4m3": // 1 + 4 + 3 bits; all ones are a NaN, and nothing is infinite
		exp, frac := int(v>>3&15), float64(v&7)
		x := math.Ldexp(8+frac, exp-10)
		switch {
		case v&0x7f == 0x7f:
			x = math.NaN()
		case exp == 0:
			x = math.Ldexp(frac, -9)
		}
		if v>>7&1 == 1 {
			x = -x
		}
		return float32(x)
	}
	return float16.Frombits(uint16(v)).Float32()
}

// narrow rounds to a 16-bit float, ties to even.
func narrow(typ string, x float32) uint64 {
	if typ == "bf16" {
		b := math.Float32bits(x)
		if b&0x7fffffff > 0x7f800000 {
			return 0x7fff
		}
		return uint64((b + 0x7fff + b>>16&1) >> 16)
	}
	if x != x {
		return 0x7fff
	}
	return uint64(float16.Fromfloat32(x).Bits())
}

// floats are instructions of floats, with the number of their operands.
var floats = map[string]struct {
	operands int
	f        func(x []uint64) uint64
}{
	"mul.f32": {2, func(x []uint64) uint64 { return bits32(f32(x[0]) * f32(x[1])) }},
	"add.f32": {2, func(x []uint64) uint64 { return bits32(f32(x[0]) + f32(x[1])) }},
	"fma.rn.f32": {3, func(x []uint64) uint64 {
		return bits32(float32(math.FMA(float64(f32(x[0])), float64(f32(x[1])), float64(f32(x[2])))))
	}},
	"ex2.approx.ftz.f32": {1, func(x []uint64) uint64 { return bits32(float32(math.Exp2(float64(f32(x[0]))))) }},
	"max.NaN.f32":        {2, func(x []uint64) uint64 { return pick(x[0], x[1], true) }},
	"min.NaN.f32":        {2, func(x []uint64) uint64 { return pick(x[0], x[1], false) }},
	"cvt.f32.f16":        {1, func(x []uint64) uint64 { return bits32(small("f16", x[0])) }},
	"cvt.rn.f16.f32":     {1, func(x []uint64) uint64 { return narrow("f16", f32(x[0])) }},
	"cvt.rn.bf16.f32":    {1, func(x []uint64) uint64 { return narrow("bf16", f32(x[0])) }},
	"cvt.rn.f16x2.f32":   {2, func(x []uint64) uint64 { return narrow("f16", f32(x[0]))<<16 | narrow("f16", f32(x[1])) }},
	"fma.rn.f16x2":       {3, func(x []uint64) uint64 { return halves("f16", x) }},
	"fma.rn.bf16x2":      {3, func(x []uint64) uint64 { return halves("bf16", x) }},
	"cvt.rna.tf32.f32":   {1, func(x []uint64) uint64 { return uint64(tf32(uint32(x[0]))) }},
	"cvt.rn.bf16x2.f32":  {2, func(x []uint64) uint64 { return narrow("bf16", f32(x[0]))<<16 | narrow("bf16", f32(x[1])) }},
}

// halves is x·y + z of both halves.
func halves(typ string, x []uint64) (all uint64) {
	for at := 0; at < 32; at += 16 {
		half := func(i int) float64 { return float64(small(typ, x[i]>>at&0xffff)) }
		all |= narrow(typ, float32(math.FMA(half(0), half(1), half(2)))) << at
	}
	return all
}

// tf32 is an f32 rounded to TF32: to nearest, ties away from zero.
func tf32(bits uint32) uint32 {
	if bits&0x7fffffff < 0x7f800000 {
		bits += 0x1000
	}
	return bits &^ 0x1fff
}

// float is arithmetic of floats, and what packs registers.
func (m *machine) float(o *op, on []int) error {
	name := o.in.Op
	known := floats[name]
	switch {
	case known.f != nil && len(o.dst) == 1 && len(o.src) == known.operands:
		x := make([]uint64, known.operands)
		for _, t := range on {
			for i, a := range o.src {
				x[i] = m.get(a, t)
			}
			m.set(o, 0, t, known.f(x))
		}
		return nil
	case strings.HasPrefix(name, "mov.b") && len(o.dst) > 0 && len(o.src) > 0:
		size := typeBytes(o.words[1]) * 8
		for _, t := range on {
			var v uint64
			for i, a := range o.src {
				v |= extend(fmt.Sprintf("b%d", size/len(o.src)), m.get(a, t)) << (i * size / len(o.src))
			}
			for i := range o.dst {
				m.set(o, i, t, extend(fmt.Sprintf("b%d", size/len(o.dst)), v>>(i*size/len(o.dst))))
			}
		}
		return nil
	}
	return fmt.Errorf("it is not known")
}

// pick is the greater or the lesser of two numbers; NaN where one is.
func pick(x, y uint64, greater bool) uint64 {
	a, b := f32(x), f32(y)
	switch {
	case a != a || b != b:
		return 0x7fffffff
	case a == b: // -0 is less than +0
		if greater == (x>>31 == 0) {
			return x
		}
		return y
	case (a > b) == greater:
		return x
	}
	return y
}

// warpsOf are the warps of threads, which must be whole.
func warpsOf(on []int) ([]int, error) {
	var out []int
	for i, t := range on {
		if i%32 == 0 {
			out = append(out, t)
		}
		if t != out[len(out)-1]+i%32 || out[len(out)-1]%32 != 0 {
			return nil, fmt.Errorf("not all threads of a warp execute it")
		}
	}
	if len(on)%32 != 0 {
		return nil, fmt.Errorf("not all threads of a warp execute it")
	}
	return out, nil
}

// ballot is vote.sync.ballot of all lanes of warps (PTX ISA, "vote.sync").
func (m *machine) ballot(o *op, on []int) error {
	warps, err := warpsOf(on)
	if err != nil {
		return err
	}
	if !o.has("ballot") || !o.has("b32") {
		return fmt.Errorf("it is not known")
	}
	for _, w := range warps {
		var votes uint64
		for lane := range 32 {
			if m.get(o.src[1], w+lane)&(1<<32-1) != 1<<32-1 {
				return fmt.Errorf("of a part of a warp")
			}
			votes |= m.get(o.src[0], w+lane) & 1 << lane
		}
		for lane := range 32 {
			m.set(o, 0, w+lane, votes)
		}
	}
	return nil
}

// matrices is ldmatrix (PTX ISA, "ldmatrix").
func (m *machine) matrices(o *op, on []int) error {
	warps, err := warpsOf(on)
	if err != nil {
		return err
	}
	if !o.has("m8n8") || !o.has("b16") || !o.has(fmt.Sprintf("x%d", len(o.dst))) {
		return fmt.Errorf("it is not known")
	}
	for _, w := range warps {
		for k := range o.dst {
			var x [8][8]uint64
			for i := range 8 {
				row, err := m.memory("shared", m.address(o.src[0], w+8*k+i), 16, w)
				if err != nil {
					return err
				}
				for j := range 8 {
					x[i][j] = little(row[2*j : 2*j+2])
				}
			}
			for lane := range 32 {
				i, j := lane/4, lane%4*2
				lo, hi := x[i][j], x[i][j+1]
				if o.has("trans") {
					lo, hi = x[j][i], x[j+1][i]
				}
				m.set(o, k, w+lane, lo|hi<<16)
			}
		}
	}
	return nil
}

// fragmentA is the row and the k of element e that a thread holds of the first operand of mma.sync m16n8k16 (pair 2) and
// m16n8k8 of tf32 (pair 1), and, of a warpgroup's 128 threads, of wgmma with that operand in registers.
func fragmentA(thread, e, pair int) (row, k int) {
	r := e / pair // the register
	return thread/32*16 + thread%32/4 + r%2*8, thread%4*pair + e%pair + r/2*4*pair
}

// fragmentB is the k and the column of element e that a lane holds of the second operand of mma.sync.
func fragmentB(lane, e, pair int) (k, col int) {
	return lane%4*pair + e%pair + e/pair*4*pair, lane / 4
}

// fragmentC is the row and the column of sum e of a thread, of mma.sync and of wgmma.
func fragmentC(thread, e int) (row, col int) {
	return thread/32*16 + thread%32/4 + e/2%2*8, e/4*8 + thread%4*2 + e%2
}

// place is where the element of row r of m or n, and of k, lies of an operand with a swizzle of 128 bytes, which is
// contiguous along k or, across and of two bytes, along m or n.
func (d matrix) place(across bool, r, k, bytes int) uint64 {
	if across {
		return swizzle(d.at + uint64(r/64)*d.lead + uint64(k/8)*d.stride + uint64(k%8)*128 + uint64(r%64*2))
	}
	return swizzle(d.at + uint64(r/8)*d.stride + uint64(r%8)*128 + uint64(k*bytes))
}

// mma is mma.sync of m16n8 (PTX ISA, "Matrix fragments for mma.m16n8k16" and k8 of tf32).
func (m *machine) mma(o *op, on []int) error {
	warps, err := warpsOf(on)
	if err != nil {
		return err
	}
	if strings.HasPrefix(o.words[1], "sp") {
		return m.sparse(o, warps)
	}
	// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
	if len(o.words) != 10 || o.words[4] != "row" || o.words[5] != "col" || o.words[6] != "f32" || o.words[9] != "f32" || o.words[7] != o.words[8] || len(o.dst) != 4 || len(o.src) != 10 {
		return fmt.Errorf("it is not known")
	}
	typ, depth := o.words[7], 16
	pair := 2 // elements of a register
	if typ == "tf32" {
		depth, pair = 8, 1
	}
	if o.words[3] != fmt.Sprintf("m16n8k%d", depth) || typ != "f16" && typ != "bf16" && typ != "tf32" {
		return fmt.Errorf("it is not known")
	}
	value := func(v uint64, i int) float64 {
		if typ == "tf32" {
			return float64(f32(v &^ 0x1fff))
		}
		return float64(small(typ, v>>(16*i)))
	}
	for _, w := range warps {
		var a [16][16]float64
		var b [16][8]float64
		for lane := range 32 {
			for e := range 4 * pair {
				row, k := fragmentA(lane, e, pair)
				a[row][k] = value(m.get(o.src[e/pair], w+lane), e%pair)
			}
			for e := range 2 * pair {
				k, col := fragmentB(lane, e, pair)
				b[k][col] = value(m.get(o.src[4+e/pair], w+lane), e%pair)
			}
		}
		for lane := range 32 {
			for e := range 4 {
				sum := float64(f32(m.get(o.src[6+e], w+lane)))
				row, col := fragmentC(lane, e)
				for k := range depth {
					sum += a[row][k] * b[k][col]
				}
				m.set(o, e, w+lane, bits32(float32(sum)))
			}
		}
	}
	return nil
}

// sparse is mma.sp of m16n8k32 of two-byte floats: the first operand has two numbers of each four along k, and the metadata says which
// (PTX ISA, "Matrix fragments for sparse mma.m16n8k32 with .f16 and .bf16 types" and "Sparsity selector").
func (m *machine) sparse(o *op, warps []int) error {
	// mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 d, a, b, c, e, selector;
	if form := strings.Join(o.words[2:], " "); form != "sync aligned m16n8k32 row col f32 f16 f16 f32" && form != "sync aligned m16n8k32 row col f32 bf16 bf16 f32" ||
		len(o.dst) != 4 || len(o.src) != 14 {
		return fmt.Errorf("it is not known")
	}
	typ := o.words[8]
	const groups = 8 // of four along k
	for _, w := range warps {
		selector := int(m.get(o.src[13], w))
		if selector > 1 {
			return fmt.Errorf("the sparsity selector is %d", selector)
		}
		var a, b [16][32]float64 // both with k along lines
		for lane := range 32 {
			for e := range 8 {
				k, col := fragmentB(lane, e, 2)
				b[col][k] = float64(small(typ, m.get(o.src[4+e/2], w+lane)>>(16*(e%2))))
			}
		}
		for row := range 16 {
			for group := range groups {
				// The number of a thread that has bits of the row: a pair of each four, of which each has the groups of half of k.
				from := row%8*4 + selector*2 + group/(groups/2)
				bits := m.get(o.src[12], w+from) >> (row/8*16 + group%(groups/2)*4)
				if bits&3 >= bits>>2&3 {
					return fmt.Errorf("the metadata of row %d has columns %d and %d of a group, which do not rise", row, bits&3, bits>>2&3)
				}
				for lane := row % 8 * 4; lane < row%8*4+4; lane++ {
					for e := range 8 {
						r, k := fragmentA(lane, e, 2) // k among the numbers that there are
						if r == row && k/2 == group {
							a[row][4*group+int(bits>>(k%2*2)&3)] = float64(small(typ, m.get(o.src[e/2], w+lane)>>(16*(e%2))))
						}
					}
				}
			}
		}
		for lane := range 32 {
			for e := range 4 {
				sum := float64(f32(m.get(o.src[8+e], w+lane)))
				row, col := fragmentC(lane, e)
				for k := range 4 * groups {
					sum += a[row][k] * b[col][k]
				}
				m.set(o, e, w+lane, bits32(float32(sum)))
			}
		}
	}
	return nil
}

// wgmma is wgmma.mma_async of floats of one, two or four bytes with descriptors of operands with
// 128-byte swizzle, or the first operand in registers (PTX ISA, "Asynchronous warpgroup level matrix").
func (m *machine) wgmma(o *op, on []int) error {
	warps, err := warpsOf(on)
	if err != nil {
		return err
	}
	cols := len(o.dst) * 2
	typ := o.words[6]
	args := o.in.Args
	// wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 d, a, b, scale-d, imm-scale-a, imm-scale-b, trans-a, trans-b;
	// without trans-a where a is in registers, and both where elements are bytes, or tf32:
	// wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2 d, a, b, scale-d, imm-scale-a, imm-scale-b;
	bytes, depth := 2, 16
	types := o.words[6:]
	if strings.HasPrefix(typ, "e") || typ == "tf32" {
		if bytes, depth = 1, 32; typ == "tf32" {
			bytes, depth = 4, 8
		}
		args = append(slices.Clone(args), Operand{Text: "0"}, Operand{Text: "0"})
	} else if typ != types[1] {
		return fmt.Errorf("it is not known")
	}
	held := len(args) == 7 && args[1].Kind == Vec && len(args[1].Sub) == 4
	if len(o.words) != 8 || o.words[4] != fmt.Sprintf("m64n%dk%d", cols, depth) || o.words[5] != "f32" || !held && (len(args) != 8 || args[1].Kind == Vec) || len(warps)%4 != 0 {
		return fmt.Errorf("it is not known")
	}
	if args[3].Text != "0" && args[3].Text != "1" || args[4].Text != "1" || args[5].Text != "1" {
		return fmt.Errorf("its scales are not 1")
	}
	add := args[3].Text == "1"
	read := func(typ string, d matrix, across bool, r, k, t int) (float64, error) {
		b, err := m.memory("shared", d.place(across, r, k, bytes), bytes, t)
		if err != nil {
			return 0, err
		}
		if typ == "tf32" {
			return float64(f32(little(b) &^ 0x1fff)), nil
		}
		return float64(small(typ, little(b))), nil
	}
	for g := 0; g < len(warps); g += 4 {
		first := warps[g]
		a, b := make([][32]float64, 64), make([][32]float64, cols)
		right := 1 // where its descriptor is
		fill := func(typ string, to [][32]float64, from int, across Operand) error {
			d := descriptor(m.get(o.src[from], first))
			if d.swizzle != 128 {
				return fmt.Errorf("its descriptors' swizzle is not 128 bytes")
			}
			for r := range to {
				for k := range depth {
					if to[r][k], err = read(typ, d, across.Text != "0", r, k, first); err != nil {
						return err
					}
				}
			}
			return nil
		}
		if held {
			right = 4
			for t := range 128 {
				for i := range 8 {
					v := m.get(o.src[i/2], first+t) >> (i % 2 * 16)
					row, k := fragmentA(t, i, 2)
					a[row][k] = float64(small(typ, v&0xffff))
				}
			}
		} else if err := fill(typ, a, 0, args[6]); err != nil {
			return err
		}
		if err := fill(types[1], b, right, args[len(args)-1]); err != nil {
			return err
		}
		for t := range 128 {
			for e := range o.dst {
				row, col := fragmentC(t, e)
				sum := 0.0
				if add {
					sum = float64(f32(m.get(arg{reg: o.dst[e]}, first+t)))
				}
				for k := range depth {
					sum += a[row][k] * b[col][k]
				}
				m.set(o, e, first+t, bits32(float32(sum)))
			}
		}
	}
	return nil
}
