package interp

import (
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
)

// gemm is a batch of matrix products over operands in any layout: element
// (i, j) of batch n of c lies at c[cB[n]+cM[i]+cN[j]], and so on. Offsets
// instead of strides make every pairwise contraction, whatever its
// permutations and however many letters share a role, one call without copies
// of the operands; a tile is packed just before it is multiplied.
type gemm[T float32 | float64] struct {
	a, b, c    []T
	aB, aM, aK []int
	bB, bK, bN []int
	cB, cM, cN []int
	round      func([]T) // rounds results once, when their sum is complete; nil for none
}

// The sizes of a tile: its accumulators and packed operands (1.2 MB of
// float32) stay in a core's cache. mc and nc are multiples of the 6 × 16 kernel.
const (
	mc = 240
	nc = 512
	kc = 256
)

// flop is the work of the whole batch, from which the number of threads
// follows.
func (g *gemm[T]) flop() float64 {
	return 2 * float64(len(g.cB)) * float64(len(g.cM)) * float64(len(g.cN)) * float64(len(g.aK))
}

// run computes c on all cores of p, tile by tile.
func (g *gemm[T]) run(p *pool) {
	rows, cols := (len(g.cM)+mc-1)/mc, (len(g.cN)+nc-1)/nc
	tiles := len(g.cB) * rows * cols
	grain := 1
	if tiles > 0 {
		grain = max(1, int(1e6/(1+g.flop()/float64(tiles))))
	}
	p.parallel(tiles, grain, func(lo, hi int) {
		w := g.buffers()
		defer w.release()
		for t := lo; t < hi && !p.stopped(); t++ {
			n, t := t/(rows*cols), t%(rows*cols)
			i, j := t/cols*mc, t%cols*nc
			g.tile(p, w, n, i, min(i+mc, len(g.cM)), j, min(j+nc, len(g.cN)))
		}
	})
}

// serial computes c in the calling goroutine.
func (g *gemm[T]) serial(p *pool, w *tileBuf[T]) {
	for n := range g.cB {
		for i := 0; i < len(g.cM); i += mc {
			for j := 0; j < len(g.cN); j += nc {
				g.tile(p, w, n, i, min(i+mc, len(g.cM)), j, min(j+nc, len(g.cN)))
			}
		}
	}
}

// tileBuf is a worker's scratch space.
type tileBuf[T float32 | float64] struct{ a, b, c []T }

// Buffers of the two types are reused, so that a program of many small products
// does not spend its time clearing memory.
var tileBufs32, tileBufs64 sync.Pool

func bufPool[T float32 | float64]() *sync.Pool {
	var zero T
	if _, ok := any(zero).(float32); ok {
		return &tileBufs32
	}
	return &tileBufs64
}

func (g *gemm[T]) buffers() *tileBuf[T] {
	m, n, k := up(min(len(g.cM), mc), 6), up(min(len(g.cN), nc), 16), min(len(g.aK), kc)
	if w, ok := bufPool[T]().Get().(*tileBuf[T]); ok && len(w.a) >= m*k && len(w.b) >= k*n && len(w.c) >= m*n {
		return w
	}
	return &tileBuf[T]{make([]T, m*k), make([]T, k*n), make([]T, m*n)}
}

func (w *tileBuf[T]) release() { bufPool[T]().Put(w) }

func up(n, to int) int { return (n + to - 1) / to * to }

func (g *gemm[T]) tile(p *pool, w *tileBuf[T], n, i0, i1, j0, j1 int) {
	ld := up(j1-j0, 16)
	c := w.c[:up(i1-i0, 6)*ld]
	clear(c)
	for k0 := 0; k0 < len(g.aK); k0 += kc {
		if p.stopped() {
			return
		}
		k1 := min(k0+kc, len(g.aK))
		g.multiply(w, c, ld, n, i0, i1, j0, j1, k0, k1)
	}
	for i := i0; i < i1; i++ {
		row := c[(i-i0)*ld:][:j1-j0]
		if g.round != nil {
			g.round(row)
		}
		to := g.c[g.cB[n]+g.cM[i]:]
		cols := g.cN[j0:j1]
		if contiguous(cols) {
			copy(to[cols[0]:], row)
			continue
		}
		for j, off := range cols {
			to[off] = row[j]
		}
	}
}

// multiply adds a block of a times a block of b to the tile.
func (g *gemm[T]) multiply(w *tileBuf[T], c []T, ld, n, i0, i1, j0, j1, k0, k1 int) {
	a, b := g.a[g.aB[n]:], g.b[g.bB[n]:]
	rows, cols, depth := g.aM[i0:i1], g.bN[j0:j1], k1-k0
	switch c := any(c).(type) {
	case []float32:
		w := any(w).(*tileBuf[float32])
		a, b := any(a).([]float32), any(b).([]float32)
		if haveFMA {
			packA(w.a, a, rows, g.aK[k0:k1])
			packB(w.b, b, g.bK[k0:k1], cols)
			for j := 0; j < len(cols); j += 16 {
				for i := 0; i < len(rows); i += 6 {
					fma6x16(depth, &w.a[i*depth], &w.b[j*depth], &c[i*ld+j], ld*4)
				}
			}
			return
		}
		// b goes in transposed: gonum's kernel for b as it is skips zeros of a
		// and so loses the NaN of 0 · ∞.
		packRows(w.a, a, rows, g.aK[k0:k1])
		packRows(w.b, b, cols, g.bK[k0:k1])
		blas32.Gemm(blas.NoTrans, blas.Trans, 1,
			blas32.General{Rows: len(rows), Cols: depth, Stride: depth, Data: w.a},
			blas32.General{Rows: len(cols), Cols: depth, Stride: depth, Data: w.b},
			1, blas32.General{Rows: len(rows), Cols: len(cols), Stride: ld, Data: c})
	case []float64:
		w := any(w).(*tileBuf[float64])
		packRows(w.a, any(a).([]float64), rows, g.aK[k0:k1])
		packRows(w.b, any(b).([]float64), cols, g.bK[k0:k1])
		blas64.Gemm(blas.NoTrans, blas.Trans, 1,
			blas64.General{Rows: len(rows), Cols: depth, Stride: depth, Data: w.a},
			blas64.General{Rows: len(cols), Cols: depth, Stride: depth, Data: w.b},
			1, blas64.General{Rows: len(rows), Cols: len(cols), Stride: ld, Data: c})
	}
}

// packA packs panels of six rows column by column, with zeros below the last
// row.
func packA(to, a []float32, rows, depth []int) {
	for i := 0; i < len(rows); i += 6 {
		panel := to[i*len(depth):][:6*len(depth)]
		if len(rows)-i < 6 {
			clear(panel)
			for r, off := range rows[i:] {
				for k, d := range depth {
					panel[k*6+r] = a[off+d]
				}
			}
			continue
		}
		r0, r1, r2, r3, r4, r5 := a[rows[i]:], a[rows[i+1]:], a[rows[i+2]:], a[rows[i+3]:], a[rows[i+4]:], a[rows[i+5]:]
		for k, d := range depth {
			p := panel[k*6:][:6]
			p[0], p[1], p[2], p[3], p[4], p[5] = r0[d], r1[d], r2[d], r3[d], r4[d], r5[d]
		}
	}
}

// packB packs panels of sixteen columns row by row, with zeros after the last
// column.
func packB(to, b []float32, depth, cols []int) {
	for j := 0; j < len(cols); j += 16 {
		panel := to[j*len(depth):][:16*len(depth)]
		part := cols[j:min(j+16, len(cols))]
		switch {
		case len(part) == 16 && contiguous(part):
			for k, d := range depth {
				*(*[16]float32)(panel[k*16:]) = *(*[16]float32)(b[d+part[0]:])
			}
		default:
			if len(part) < 16 {
				clear(panel)
			}
			for c, off := range part {
				for k, d := range depth {
					panel[k*16+c] = b[d+off]
				}
			}
		}
	}
}

// packRows packs a block row-major.
func packRows[T any](to, from []T, rows, cols []int) {
	dense := contiguous(cols)
	for i, off := range rows {
		row := to[i*len(cols):][:len(cols)]
		if dense {
			copy(row, from[off+cols[0]:])
			continue
		}
		for j, c := range cols {
			row[j] = from[off+c]
		}
	}
}

// contiguous reports whether offs count up by one. All are compared: permuted
// letters give offsets whose first and last are as far apart as contiguous
// ones.
func contiguous(offs []int) bool {
	for i, o := range offs {
		if o != offs[0]+i {
			return false
		}
	}
	return len(offs) > 0
}

// offsets enumerates the positions of an index space in row-major order.
func offsets(shape, strides []int) []int {
	offs := []int{0}
	for d, n := range shape {
		next := make([]int, 0, len(offs)*n)
		for _, o := range offs {
			for i := range n {
				next = append(next, o+i*strides[d])
			}
		}
		offs = next
	}
	return offs
}
