package differential

import (
	"fmt"
	"strings"
	"testing"

	"dmir/testkit/need"
	"dmir/testkit/randprog"
)

// Random programs on sparse tensors compute what the reference does, on the processor and
// the emulated GPU.
func TestSparsePrograms(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	needCPU(t)
	var cases []Case
	for seed := range uint64(6) {
		c := Case{Name: fmt.Sprint("seed ", seed), Text: randprog.Sparse(seed), Seed: 1}
		if seed%2 == 0 {
			c.Device = "cpu"
		}
		cases = append(cases, c)
	}
	for i, text := range sparseProducts {
		cases = append(cases, Case{Name: fmt.Sprint("product ", i), Text: text, Seed: 1}, Case{Name: fmt.Sprint("product ", i, " on the processor"), Text: text, Seed: 1, Device: "cpu"})
	}
	for _, format := range []string{"csr", "csc", "coo", "bsr<2x2>"} {
		text := strings.ReplaceAll(paddedProduct, "#f", "#dm."+strings.Replace(format+"<nnz = 100>", "><", ", ", 1))
		cases = append(cases, Case{Name: "padding of " + format, Text: text, Seed: 1}, Case{Name: "padding of " + format + " on the processor", Text: text, Seed: 1, Device: "cpu"})
	}
	cases = append(cases, Case{Name: "rows of several tasks", Text: sampledRows, Seed: 1, Device: "cpu"}, Case{Name: "long rows", Text: longRows, Seed: 1, Device: "cpu"},
		Case{Name: "rising searches", Text: risingSearches, Seed: 1, Device: "cpu"})
	for _, rooms := range []string{"[12, 480, 600]", "[12, 300, 1200]"} {
		text := strings.ReplaceAll(shortFibers, "ROOMS", rooms)
		cases = append(cases, Case{Name: "fibers of " + rooms, Text: text, Seed: 1}, Case{Name: "fibers of " + rooms + " on the processor", Text: text, Seed: 1, Device: "cpu"})
	}
	agree(t, cases)
}

// sampledRows is a masked product, and the gradient of it and of a product, of so many rows that several tasks compute them.
const sampledRows = `!d = tensor<600x600xf32>
!s = tensor<600x600xf32, #dm.csr<nnz = 12000>>
func.func @f(%x: tensor<f32>) -> (tensor<f32>, tensor<12000xf32>, tensor<12000xf32>) {
  %two = dm.constant dense<2.0> : tensor<f32>
  %n = dm.rng normal, seed = 5 : !d
  %m = dm.sub %n, %two : (!d, tensor<f32>) -> !d
  %r = dm.relu %m : !d
  %a = dm.convert_format %r : (!d) -> !s
  %l, %da, %db = dm.grad @loss %a, %a, wrt = [0, 1] : (!s, !s) -> (tensor<f32>, !s, !s)
  %p, %c, %v = dm.unpack %da : (!s) -> (tensor<601xi32>, tensor<12000xi32>, tensor<12000xf32>)
  %q, %e, %w = dm.unpack %db : (!s) -> (tensor<601xi32>, tensor<12000xi32>, tensor<12000xf32>)
  return %l, %v, %w : tensor<f32>, tensor<12000xf32>, tensor<12000xf32>
}

func.func private @loss(%a: !s, %b: !s) -> tensor<f32> {
  %s = dm.sample "ik,kj->ij" %a, %a, %b, products = 400000 : (!s, !s, !s) -> !s
  %t = dm.mul %s, %s : !s
  %l = dm.reduce add %t : (!s) -> tensor<f32>
  return %l : tensor<f32>
}
`

// longRows multiplies a matrix with long rows, a few empty ones and any number of elements in others, by few columns.
const longRows = `!d = tensor<40x90xf32>
!s = tensor<40x90xf32, #dm.csr<nnz = 2600>>
func.func @f(%x: !d, %limit: tensor<40x1xf32>, %y: tensor<90x5xf32>, %z: tensor<90x16xf32>) -> (tensor<40x5xf32>, tensor<40x16xf32>) {
  %m = dm.sub %x, %limit : (!d, tensor<40x1xf32>) -> !d
  %r = dm.relu %m : !d
  %a = dm.convert_format %r : (!d) -> !s
  %p = dm.matmul %a, %y : (!s, tensor<90x5xf32>) -> tensor<40x5xf32>
  %q = dm.matmul %a, %z : (!s, tensor<90x16xf32>) -> tensor<40x16xf32>
  return %p, %q : tensor<40x5xf32>, tensor<40x16xf32>
}
`

// risingSearches looks up numbers that rise in as many numbers as several tasks walk over.
const risingSearches = `func.func @f(%scale: tensor<f32>) -> (tensor<601xi32>, tensor<601xi32>, tensor<300x2xi32>) {
  %r = dm.rng normal, seed = 5 : tensor<900xf32>
  %far = dm.constant dense<300.0> : tensor<f32>
  %s = dm.mul %r, %far : (tensor<900xf32>, tensor<f32>) -> tensor<900xf32>
  %i = dm.convert %s : (tensor<900xf32>) -> tensor<900xi32>
  %o = dm.sort %i, dim = 0 : tensor<900xi32>
  %q = dm.iota dim = 0 : tensor<601xi32>
  %a = dm.searchsorted %o, %q : (tensor<900xi32>, tensor<601xi32>) -> tensor<601xi32>
  %b = dm.searchsorted %o, %q, side = right : (tensor<900xi32>, tensor<601xi32>) -> tensor<601xi32>
  %p = dm.iota dim = 0, step = 2 : tensor<300xi32>
  %c = dm.searchsorted %o, %p : (tensor<900xi32>, tensor<300xi32>) -> tensor<300xi32>
  %d = dm.reshape %c : (tensor<300xi32>) -> tensor<300x1xi32>
  %e = dm.iota dim = 1 : tensor<300x2xi32>
  %f = dm.add %d, %e : (tensor<300x1xi32>, tensor<300x2xi32>) -> tensor<300x2xi32>
  return %a, %b, %f : tensor<601xi32>, tensor<601xi32>, tensor<300x2xi32>
}
`

// shortFibers multiplies a tensor whose fibers have few elements, or may have several by the rooms that are stated, with rows that are no
// whole vectors, and differentiates that.
const shortFibers = `!d = tensor<12x40x6xf32>
!s = tensor<12x40x6xf32, #dm.csf<nnz = ROOMS>>
!b = tensor<40x41xf32>
!c = tensor<6x41xf32>
!y = tensor<12x41xf32>
func.func @f(%x: !d, %b: !b, %c: !c) -> (!y, !b, !c, !y) {
  %least = dm.constant dense<1.2> : tensor<f32>
  %is = dm.compare ge %x, %least : (!d, tensor<f32>) -> tensor<12x40x6xi1>
  %one = dm.convert %is : (tensor<12x40x6xi1>) -> !d
  %a = dm.mul %x, %one : !d
  %s = dm.convert_format %a : (!d) -> !s
  %p = dm.einsum "ijk,jr,kr->ir" %s, %b, %c : (!s, !b, !c) -> !y
  %l, %db, %dc = dm.grad @loss %s, %b, %c, wrt = [1, 2] : (!s, !b, !c) -> (tensor<f32>, !b, !c)
  %q = dm.einsum "ijk,jr,kr->ir" %a, %b, %c : (!d, !b, !c) -> !y
  %off = dm.sub %p, %q : !y
  %tiny = dm.constant dense<1.0e-3> : tensor<f32>
  %size = dm.abs %off : !y
  %differs = dm.compare gt %size, %tiny : (!y, tensor<f32>) -> tensor<12x41xi1>
  %never = dm.convert %differs : (tensor<12x41xi1>) -> !y
  return %p, %db, %dc, %never : !y, !b, !c, !y
}

func.func private @loss(%s: !s, %b: !b, %c: !c) -> tensor<f32> {
  %p = dm.einsum "ijk,jr,kr->ir" %s, %b, %c : (!s, !b, !c) -> !y
  %q = dm.mul %p, %p : !y
  %l = dm.reduce add %q : (!y) -> tensor<f32>
  return %l : tensor<f32>
}
`

// paddedProduct multiplies a matrix with room for more elements than it stores with dense ones that are infinite where it stores nothing,
// as at the coordinates of padding, and differentiates that by all three.
const paddedProduct = `!d = tensor<10x8xf32>
!s = tensor<10x8xf32, #f>
!b = tensor<8x20xf32>
!c = tensor<10x20xf32>
func.func @f(%x: tensor<8x6xf32>, %y: tensor<6x20xf32>, %z: tensor<8x20xf32>) -> (!c, tensor<f32>, !d, !b, !c) {
  %zero = dm.constant dense<0.0> : tensor<f32>
  %one = dm.constant dense<1.0> : tensor<f32>
  %infinite = dm.div %one, %zero : tensor<f32>
  %r = dm.relu %x : tensor<8x6xf32>
  %a = dm.pad %r, %zero, low = [2, 2], high = [0, 0] : (tensor<8x6xf32>, tensor<f32>) -> !d
  %b = dm.pad %y, %infinite, low = [2, 0], high = [0, 0] : (tensor<6x20xf32>, tensor<f32>) -> !b
  %c = dm.pad %z, %infinite, low = [2, 0], high = [0, 0] : (tensor<8x20xf32>, tensor<f32>) -> !c
  %s = dm.convert_format %a : (!d) -> !s
  %p = func.call @product(%s, %b, %c) : (!s, !b, !c) -> !c
  %l, %ds, %db, %dc = dm.grad @loss %s, %b, %c, wrt = [0, 1, 2] : (!s, !b, !c) -> (tensor<f32>, !s, !b, !c)
  %da = dm.convert_format %ds : (!s) -> !d
  return %p, %l, %da, %db, %dc : !c, tensor<f32>, !d, !b, !c
}

func.func private @product(%s: !s, %b: !b, %c: !c) -> !c {
  %p = dm.einsum "ij,jr,ir->ir" %s, %b, %c : (!s, !b, !c) -> !c
  return %p : !c
}

func.func private @loss(%s: !s, %b: !b, %c: !c) -> tensor<f32> {
  %p = func.call @product(%s, %b, %c) : (!s, !b, !c) -> !c
  %q = dm.mul %p, %p : !c
  %l = dm.reduce add %q : (!c) -> tensor<f32>
  return %l : tensor<f32>
}
`

// sparseProducts are products of sparse matrices: in rows, masked, of blocks, and of vectors.
var sparseProducts = []string{`!a = tensor<40x30xf32, #dm.csr<nnz = 700>>
!b = tensor<30x50xf32, #dm.csr<nnz = 800>>
!c = tensor<40x50xf32, #dm.csr<nnz = 2000>>
func.func @f(%x: tensor<40x30xf32>, %y: tensor<30x50xf32>) -> (tensor<40x50xf32>, tensor<40x50xf32>, tensor<40x50xf32>) {
  %p = dm.relu %x : tensor<40x30xf32>
  %q = dm.relu %y : tensor<30x50xf32>
  %a = dm.convert_format %p : (tensor<40x30xf32>) -> !a
  %b = dm.convert_format %q : (tensor<30x50xf32>) -> !b
  %c = dm.matmul %a, %b, products = 20000 : (!a, !b) -> !c
  %m = dm.sample "ik,kj->ij" %c, %a, %b, products = 60000 : (!c, !a, !b) -> !c
  %u = dm.convert_format %c : (!c) -> tensor<40x50xf32>
  %v = dm.convert_format %m : (!c) -> tensor<40x50xf32>
  %w = dm.matmul %a, %b, products = 20000 : (!a, !b) -> tensor<40x50xf32>
  return %u, %v, %w : tensor<40x50xf32>, tensor<40x50xf32>, tensor<40x50xf32>
}
`, `!a = tensor<70x30xi32, #dm.csc<nnz = 2100>>
!b = tensor<30x9000xi32, #dm.csc<nnz = 3000>>
!c = tensor<70x9000xi32, #dm.csc<nnz = 90000>>
!r = tensor<70x30xi32, #dm.csr<nnz = 2100>>
!s = tensor<30x9000xi32, #dm.csr<nnz = 3000>>
!t = tensor<70x9000xi32, #dm.csr<nnz = 90000>>
func.func @f(%x: tensor<70x30xi32>, %y: tensor<30x60xi32>) -> (tensor<70x9000xi32>, tensor<70x9000xi32>) {
  %zero = dm.constant dense<0> : tensor<i32>
  %z = dm.pad %y, %zero, low = [0, 70], high = [0, 61], interior = [0, 150] : (tensor<30x60xi32>, tensor<i32>) -> tensor<30x9041xi32>
  %w = dm.slice %z, dims = [1], start_indices = [20], limit_indices = [9020] : (tensor<30x9041xi32>) -> tensor<30x9000xi32>
  %a = dm.convert_format %x : (tensor<70x30xi32>) -> !a
  %b = dm.convert_format %w : (tensor<30x9000xi32>) -> !b
  %c = dm.matmul %a, %b, products = 126000 : (!a, !b) -> !c
  %r = dm.convert_format %x : (tensor<70x30xi32>) -> !r
  %s = dm.convert_format %w : (tensor<30x9000xi32>) -> !s
  %t = dm.matmul %r, %s, products = 126000 : (!r, !s) -> !t
  %u = dm.convert_format %c : (!c) -> tensor<70x9000xi32>
  %v = dm.convert_format %t : (!t) -> tensor<70x9000xi32>
  return %u, %v : tensor<70x9000xi32>, tensor<70x9000xi32>
}
`, `!a = tensor<40x30xf32, #dm.coo<nnz = 700>>
!b = tensor<30x50xf32, #dm.csc<nnz = 800>>
!m = tensor<40x50xf32, #dm.dcsr<nnz = 1500>>
!c = tensor<40x50xf32, #dm.coo<nnz = 2000>>
func.func @f(%x: tensor<40x30xf32>, %y: tensor<30x50xf32>, %z: tensor<40x50xf32>) -> (tensor<40x50xf32>, tensor<f32>, tensor<40x30xf32>, tensor<30x50xf32>) {
  %p = dm.relu %x : tensor<40x30xf32>
  %q = dm.relu %y : tensor<30x50xf32>
  %r = dm.relu %z : tensor<40x50xf32>
  %a = dm.convert_format %p : (tensor<40x30xf32>) -> !a
  %b = dm.convert_format %q : (tensor<30x50xf32>) -> !b
  %m = dm.convert_format %r : (tensor<40x50xf32>) -> !m
  %c = dm.matmul %a, %b, products = 20000 : (!a, !b) -> !c
  %u = dm.convert_format %c : (!c) -> tensor<40x50xf32>
  %l, %da, %db = dm.grad @loss %a, %b, %m, wrt = [0, 1] : (!a, !b, !m) -> (tensor<f32>, !a, !b)
  %v = dm.convert_format %da : (!a) -> tensor<40x30xf32>
  %w = dm.convert_format %db : (!b) -> tensor<30x50xf32>
  return %u, %l, %v, %w : tensor<40x50xf32>, tensor<f32>, tensor<40x30xf32>, tensor<30x50xf32>
}

func.func private @loss(%a: !a, %b: !b, %m: !m) -> tensor<f32> {
  %s = dm.sample "ik,kj->ij" %m, %a, %b, products = 20000 : (!m, !a, !b) -> !m
  %t = dm.mul %s, %s : !m
  %l = dm.reduce add %t : (!m) -> tensor<f32>
  return %l : tensor<f32>
}
`, `!a = tensor<16x24xf32, #dm.bsr<4x4, nnz = 24>>
!b = tensor<24x12xf32, #dm.bsr<4x4, nnz = 18>>
!c = tensor<16x12xf32, #dm.bsr<4x4, nnz = 12>>
!v = tensor<24xf32, #dm.sparse_vector<nnz = 24>>
func.func @f(%x: tensor<16x24xf32>, %y: tensor<24x12xf32>, %s: tensor<24xf32>) -> (tensor<16x12xf32>, tensor<f32>, tensor<16xf32>) {
  %r = dm.relu %s : tensor<24xf32>
  %a = dm.convert_format %x : (tensor<16x24xf32>) -> !a
  %b = dm.convert_format %y : (tensor<24x12xf32>) -> !b
  %v = dm.convert_format %r : (tensor<24xf32>) -> !v
  %c = dm.matmul %a, %b, products = 100 : (!a, !b) -> !c
  %u = dm.convert_format %c : (!c) -> tensor<16x12xf32>
  %d = dm.einsum "i,i->" %v, %v : (!v, !v) -> tensor<f32>
  %e = dm.einsum "ij,j->i" %a, %v : (!a, !v) -> tensor<16xf32>
  return %u, %d, %e : tensor<16x12xf32>, tensor<f32>, tensor<16xf32>
}
`, `!n = tensor<40x64xf16, #dm.nm<2:4>>
func.func @f(%x: tensor<40x64xf16>, %w: tensor<136x64xf16>, %b: tensor<40xf16>) -> (tensor<136x40xf16>, tensor<40x136xf16>) {
  %n = dm.prune %x : (tensor<40x64xf16>) -> !n
  %y = dm.einsum "bi,oi->bo" %w, %n : (tensor<136x64xf16>, !n) -> tensor<136x40xf16>
  %0 = dm.add %y, %b : (tensor<136x40xf16>, tensor<40xf16>) -> tensor<136x40xf16>
  %1 = dm.relu %0 : tensor<136x40xf16>
  %z = dm.einsum "oi,bi->ob" %n, %w : (!n, tensor<136x64xf16>) -> tensor<40x136xf16>
  return %1, %z : tensor<136x40xf16>, tensor<40x136xf16>
}
`, `!a = tensor<20x16xf32, #dm.csr<nnz = 200>>
!b = tensor<20x32xf32, #dm.csr<nnz = 400>>
!c = tensor<12x32xf32, #dm.bsr<2x4, nnz = 48>>
!n = tensor<20x16xf32, #dm.nm<2:4>>
func.func @f(%x: tensor<20x16xf32>, %w: tensor<16x5xf32>) -> (tensor<12x32xf32>, tensor<20x5xf32>, tensor<20xf32>, tensor<16xf32>) {
  %r = dm.relu %x : tensor<20x16xf32>
  %a = dm.convert_format %r : (tensor<20x16xf32>) -> !a
  %b = dm.concatenate %a, %a, dim = 1 : (!a, !a) -> !b
  %c = dm.slice %b, dims = [0], start_indices = [3], limit_indices = [15] : (!b) -> !c
  %u = dm.convert_format %c : (!c) -> tensor<12x32xf32>
  %n = dm.prune %x : (tensor<20x16xf32>) -> !n
  %y = dm.matmul %n, %w : (!n, tensor<16x5xf32>) -> tensor<20x5xf32>
  %m = dm.reduce max %a, dims = [1] : (!a) -> tensor<20xf32>
  %v = dm.mean %a, dims = [0] : (!a) -> tensor<16xf32>
  return %u, %y, %m, %v : tensor<12x32xf32>, tensor<20x5xf32>, tensor<20xf32>, tensor<16xf32>
}
`, `!a = tensor<20x16xf32, #dm.sparse<map = (i, j) -> (i : dense, j : loose_compressed), nnz = 320>>
!b = tensor<20x16xf32, #dm.csr<nnz = 320>>
!u = tensor<20x16xf32, #dm.csr<nnz = 320>>
!c = tensor<20x16xi8, #dm.csr<nnz = 320>>
func.func @f(%x: tensor<20x16xf32>, %y: tensor<20x16xf32>, %w: tensor<16x5xf32>) -> (tensor<20x5xf32>, tensor<20x16xf32>, tensor<20x16xf32>, tensor<20xf32>) {
  %r = dm.relu %x : tensor<20x16xf32>
  %q = dm.relu %y : tensor<20x16xf32>
  %a = dm.convert_format %r : (tensor<20x16xf32>) -> !a
  %b = dm.convert_format %q : (tensor<20x16xf32>) -> !b
  %0 = dm.matmul %a, %w : (!a, tensor<16x5xf32>) -> tensor<20x5xf32>
  %s, %t, %of = dm.merge symmetric_difference %a, %b : (!a, !b) -> (!u, !u, !c)
  %1 = dm.sub %s, %t : !u
  %p, %k, %v = dm.unpack %1 : (!u) -> (tensor<21xi32>, tensor<320xi32>, tensor<320xf32>)
  %least = dm.constant dense<-0.5> : tensor<f32>
  %m = dm.compare gt %v, %least : (tensor<320xf32>, tensor<f32>) -> tensor<320xi1>
  %g = dm.filter %1, %m : (!u, tensor<320xi1>) -> !u
  %2 = dm.convert_format %1 : (!u) -> tensor<20x16xf32>
  %3 = dm.convert_format %g : (!u) -> tensor<20x16xf32>
  %4 = dm.reduce max %g, dims = [1], over = stored : (!u) -> tensor<20xf32>
  return %0, %2, %3, %4 : tensor<20x5xf32>, tensor<20x16xf32>, tensor<20x16xf32>, tensor<20xf32>
}
`, `!a = tensor<20x30xf32, #dm.csr<nnz = 400>>
!b = tensor<30x13000xf32, #dm.csr<nnz = 600>>
!t = tensor<30x20xf32, #dm.coo<nnz = 400>>
!y = tensor<20x13000xf32>
func.func @f(%x: tensor<20x30xf32>, %v: tensor<600xf32>) -> (!y, !y, !y, tensor<20x30xf32>) {
  %p = dm.relu %x : tensor<20x30xf32>
  %a = dm.convert_format %p : (tensor<20x30xf32>) -> !a
  %o = dm.convert_format %a : (!a) -> tensor<20x30xf32, #dm.sparse<map = (i, j) -> (j : compressed(nonunique), i : singleton), nnz = 400>>
  %t = dm.transpose %o, dims = [1, 0] : (tensor<20x30xf32, #dm.sparse<map = (i, j) -> (j : compressed(nonunique), i : singleton), nnz = 400>>) -> !t
  %ap, %ac, %av = dm.unpack %a : (!a) -> (tensor<21xi32>, tensor<400xi32>, tensor<400xf32>)
  %bp = dm.iota dim = 0, step = 20 : tensor<31xi32>
  %i = dm.iota dim = 1, step = 661 : tensor<30x20xi32>
  %n = dm.iota dim = 0 : tensor<30x20xi32>
  %j = dm.add %i, %n : tensor<30x20xi32>
  %bc = dm.reshape %j : (tensor<30x20xi32>) -> tensor<600xi32>
  %b = dm.pack %bp, %bc, %v : (tensor<31xi32>, tensor<600xi32>, tensor<600xf32>) -> !b
  %0 = dm.matmul %a, %b : (!a, !b) -> !y
  %1 = dm.einsum "ki,kj->ij" %t, %b, products = 9000 : (!t, !b) -> !y
  %2 = dm.segment_dense_product %ap, %ac, %av, %bp, %bc, %v, kind = min, combine = add, columns = 13000
      : (tensor<21xi32>, tensor<400xi32>, tensor<400xf32>, tensor<31xi32>, tensor<600xi32>, tensor<600xf32>) -> !y
  %s, %k, %w = dm.segment_product %ap, %ac, %av, %ap, %ac, %av, kind = max, combine = min, columns = 30, products = 9000
      : (tensor<21xi32>, tensor<400xi32>, tensor<400xf32>, tensor<21xi32>, tensor<400xi32>, tensor<400xf32>) -> (tensor<21xi32>, tensor<600xi32>, tensor<600xf32>)
  %c = dm.pack %s, %k, %w : (tensor<21xi32>, tensor<600xi32>, tensor<600xf32>) -> tensor<20x30xf32, #dm.csr<nnz = 600>>
  %3 = dm.convert_format %c : (tensor<20x30xf32, #dm.csr<nnz = 600>>) -> tensor<20x30xf32>
  return %0, %1, %2, %3 : !y, !y, !y, tensor<20x30xf32>
}
`, strings.Replace(denseProduct, "PRODUCTS", "", 1), strings.Replace(denseProduct, "PRODUCTS", ", products = 6000", 1)}

// denseProduct is the gradient of a dense product of two sparse matrices.
const denseProduct = `!a = tensor<20x30xf32, #dm.csr<nnz = 400>>
!y = tensor<20x20xf32>
func.func @f(%x: tensor<20x30xf32>) -> (tensor<f32>, tensor<400xf32>, tensor<400xf32>) {
  %p = dm.relu %x : tensor<20x30xf32>
  %a = dm.convert_format %p : (tensor<20x30xf32>) -> !a
  %b = dm.transpose %a, dims = [1, 0] : (!a) -> tensor<30x20xf32, #dm.csc<nnz = 400>>
  %l, %da, %db = dm.grad @loss %a, %b, wrt = [0, 1] : (!a, tensor<30x20xf32, #dm.csc<nnz = 400>>) -> (tensor<f32>, !a, tensor<30x20xf32, #dm.csc<nnz = 400>>)
  %dp, %dc, %0 = dm.unpack %da : (!a) -> (tensor<21xi32>, tensor<400xi32>, tensor<400xf32>)
  %ep, %ec, %1 = dm.unpack %db : (tensor<30x20xf32, #dm.csc<nnz = 400>>) -> (tensor<21xi32>, tensor<400xi32>, tensor<400xf32>)
  return %l, %0, %1 : tensor<f32>, tensor<400xf32>, tensor<400xf32>
}

func.func private @loss(%a: !a, %b: tensor<30x20xf32, #dm.csc<nnz = 400>>) -> tensor<f32> {
  %y = dm.matmul %a, %bPRODUCTS : (!a, tensor<30x20xf32, #dm.csc<nnz = 400>>) -> !y
  %z = dm.mul %y, %y : !y
  %l = dm.reduce add %z : (!y) -> tensor<f32>
  return %l : tensor<f32>
}
`
