package simplify_test

import "strings"

// spelling is one way to write an attention. In the lines, E is the element
// type, !q and !k are queries, keys and values [2, 3, 5|7, 8], !s the scores
// [2, 3, 5, 7], !y the result; unless types differ.
type spelling struct {
	name       string
	types      string // further aliases, or these in place of the usual ones
	args       string // beside %q, %k and %v; in place of them where they begin with "= "
	lines      string // the last one defines %y
	attributes string // the attributes of the dm.attention
	back       string // results of the function beside %y
	why        string // why there is no attention: part of the reason
}

const usual = `!q = tensor<2x3x5x8xE>
!k = tensor<2x3x7x8xE>
!s = tensor<2x3x5x7xE>
!row = tensor<2x3x5xE>
!one = tensor<2x3x5x1xE>
!y = tensor<2x3x5x8xE>
`

const (
	product = `%s = dm.einsum "bhqd,bhkd->bhqk" %q, %k : (!q, !k) -> !s` + "\n"
	values  = `%y = dm.einsum "bhqk,bhkd->bhqd" %p, %v : (!s, !k) -> !y` + "\n"
	soft    = `%p = dm.softmax %s : !s` + "\n"
)

// later are the keys that a causal mask leaves to each query, %seen, and a number
// for the others; distance is the bias of each head for each pair of query and key
// (ALiBi: Press, Smith and Lewis., arXiv 2108.12409).
const (
	biases = "!bias = tensor<3x5x7xE>\n"
	later  = `%i = dm.iota dim = 0 : tensor<5x1xi32>
%j = dm.iota dim = 1 : tensor<1x7xi32>
%two = dm.constant dense<2> : tensor<i32>
%i2 = dm.add %i, %two : (tensor<5x1xi32>, tensor<i32>) -> tensor<5x1xi32>
%seen = dm.compare ge %i2, %j : (tensor<5x1xi32>, tensor<1x7xi32>) -> tensor<5x7xi1>
%least = dm.constant dense<-60000.0> : tensor<E>
`
	distance = `%h = dm.iota dim = 0 : tensor<3x1x1xE>
%rate = dm.constant dense<-1.5> : tensor<E>
%h1 = dm.mul %h, %rate : (tensor<3x1x1xE>, tensor<E>) -> tensor<3x1x1xE>
%base = dm.constant dense<2.0> : tensor<E>
%slope = dm.pow %base, %h1 : (tensor<E>, tensor<3x1x1xE>) -> tensor<3x1x1xE>
%d0 = dm.sub %j, %i2 : (tensor<1x7xi32>, tensor<5x1xi32>) -> tensor<5x7xi32>
%d1 = dm.convert %d0 : (tensor<5x7xi32>) -> tensor<5x7xE>
%bias = dm.mul %slope, %d1 : (tensor<3x1x1xE>, tensor<5x7xE>) -> !bias
`
)

// scaled are the scores %s times c.
func scaled(c string) string {
	return strings.Replace(product, "%s", "%u", 1) + "%c = dm.constant dense<" + c + "> : tensor<E>\n%s = dm.mul %u, %c : (!s, tensor<E>) -> !s\n"
}

var spellings = []spelling{
	{name: "bare", lines: product + soft + values, attributes: "scale = 1.0"},
	{name: "a scale on the scores", lines: scaled("0.25") + soft + values, attributes: "scale = 0.25"},
	{name: "the scale that is the default", types: strings.ReplaceAll(usual, "x8xE", "x16xE"), lines: scaled("0.25") + soft + values},
	{name: "divided", lines: `%u = dm.matmul %q, %k, transpose_b = true : (!q, !k) -> !s
%c = dm.constant dense<4.0> : !s
%s = dm.div %u, %c : !s
` + soft + `%y = dm.matmul %p, %v : (!s, !k) -> !y
`, attributes: "scale = 0.25"},
	{name: "divided by a root", lines: product + `%n = dm.constant dense<16> : tensor<i32>
%n1 = dm.convert %n : (tensor<i32>) -> tensor<E>
%n2 = dm.sqrt %n1 : tensor<E>
%n3 = dm.broadcast %n2 : (tensor<E>) -> !s
%s1 = dm.div %s, %n3 : !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 0.25"},
	{name: "scales on queries and keys", lines: `%c = dm.constant dense<0.5> : tensor<E>
%q1 = dm.mul %c, %q : (tensor<E>, !q) -> !q
%k1 = dm.mul %k, %c : (!k, tensor<E>) -> !k
%s = dm.einsum "bhqd,bhkd->bhqk" %q1, %k1 : (!q, !k) -> !s
` + soft + values, attributes: "scale = 0.25"},
	{name: "the softmax written out", lines: scaled("0.25") + `%m = dm.reduce max %s, dims = [3], keep_dims = true : (!s) -> !one
%l = dm.sub %s, %m : (!s, !one) -> !s
%e = dm.exp %l : !s
%n = dm.reduce add %e, dims = [3], keep_dims = true : (!s) -> !one
%p = dm.div %e, %n : (!s, !one) -> !s
` + values, attributes: "scale = 0.25"},
	{name: "as StableHLO has it", lines: `%s = dm.einsum "bhqd,bhkd->bhqk" %q, %k : (!q, !k) -> !s
%m0 = dm.reduce max %s, dims = [3] : (!s) -> !row
%least = dm.constant dense<INF> : tensor<E>
%least1 = dm.broadcast %least, dims = [] : (tensor<E>) -> !row
%m1 = dm.max %least1, %m0 : !row
%m2 = dm.broadcast %m1, dims = [0, 1, 2] : (!row) -> !one
%m3 = dm.broadcast %m2, dims = [0, 1, 2, 3] : (!one) -> !s
%l = dm.sub %s, %m3 : !s
%e = dm.exp %l : !s
%n0 = dm.reduce add %e, dims = [3] : (!s) -> !row
%n1 = dm.reshape %n0 : (!row) -> !one
%n2 = dm.broadcast %n1 : (!one) -> !s
%p = dm.div %e, %n2 : !s
` + values, attributes: "scale = 1.0"},
	{name: "times the inverse, without the maximum", lines: scaled("0.25") + `%e = dm.exp %s : !s
%n = dm.reduce add %e, dims = [-1], keep_dims = true : (!s) -> !one
%unit = dm.constant dense<1.0> : tensor<E>
%i = dm.div %unit, %n : (tensor<E>, !one) -> !one
%p = dm.mul %e, %i : (!s, !one) -> !s
` + values, attributes: "scale = 0.25"},
	{name: "divided behind the values", lines: scaled("0.25") + `%m = dm.reduce max %s, dims = [3], keep_dims = true : (!s) -> !one
%l = dm.sub %s, %m : (!s, !one) -> !s
%e = dm.exp %l : !s
%n = dm.reduce add %e, dims = [3], keep_dims = true : (!s) -> !one
%o = dm.einsum "bhqk,bhkd->bhqd" %e, %v : (!s, !k) -> !y
%y = dm.div %o, %n : (!y, !one) -> !y
`, attributes: "scale = 0.25"},
	{name: "divided behind the values, in another order", types: usual + "!t = tensor<2x5x3x8xE>\n!r = tensor<2x5x3x1xE>\n", lines: scaled("0.125") + `%e = dm.exp %s : !s
%n0 = dm.reduce add %e, dims = [3], keep_dims = true : (!s) -> !one
%n = dm.transpose %n0, dims = [0, 2, 1, 3] : (!one) -> !r
%o = dm.einsum "bhqk,bhkd->bqhd" %e, %v : (!s, !k) -> !t
%y0 = dm.div %o, %n : (!t, !r) -> !t
%y = dm.transpose %y0, dims = [0, 2, 1, 3] : (!t) -> !y
`, attributes: "scale = 0.125"},
	{name: "sums in f64", types: usual + "!w = tensor<2x3x5x7xf64>\n!w1 = tensor<2x3x5x1xf64>\n", lines: scaled("0.25") + `%e = dm.exp %s : !s
%e1 = dm.convert %e : (!s) -> !w
%n1 = dm.reduce add %e1, dims = [3], keep_dims = true : (!w) -> !w1
%n = dm.convert %n1 : (!w1) -> !one
%p = dm.div %e, %n : (!s, !one) -> !s
` + values, attributes: "scale = 0.25"},
	{name: "heads behind rows", types: `!q = tensor<2x5x3x8xE>
!k = tensor<2x7x3x8xE>
!s = tensor<2x3x5x7xE>
!y = tensor<2x5x3x8xE>
`, lines: `%s = dm.einsum "blhp,bmhp->bhlm" %q, %k : (!q, !k) -> !s
` + soft + `%y = dm.einsum "bhlm,bmhp->blhp" %p, %v : (!s, !k) -> !y
`, attributes: "scale = 1.0"},
	{name: "keys and heads in front, operands turned round", types: `!q = tensor<2x5x3x8xE>
!k = tensor<2x7x3x8xE>
!s = tensor<7x3x5x2xE>
!y = tensor<5x8x2x3xE>
`, lines: `%s = dm.einsum "bmhp,blhp->mhlb" %k, %q : (!k, !q) -> !s
%p = dm.softmax %s, dim = 0 : !s
%y = dm.einsum "bmhp,mhlb->lpbh" %v, %p : (!k, !s) -> !y
`, attributes: "scale = 1.0"},
	{name: "heads merged with the batch, apart for the mask", types: usual + `!qm = tensor<6x5x8xE>
!km = tensor<6x7x8xE>
!sm = tensor<6x5x7xE>
!mask = tensor<2x1x1x7xE>
`, args: ", %mask: !mask", lines: `%q1 = dm.reshape %q : (!q) -> !qm
%k1 = dm.reshape %k : (!k) -> !km
%v1 = dm.reshape %v : (!k) -> !km
%kt = dm.transpose %k1, dims = [0, 2, 1] : (!km) -> tensor<6x8x7xE>
%s = dm.matmul %q1, %kt : (!qm, tensor<6x8x7xE>) -> !sm
%s1 = dm.reshape %s : (!sm) -> !s
%s2 = dm.add %s1, %mask : (!s, !mask) -> !s
%s3 = dm.reshape %s2 : (!s) -> !sm
%p = dm.softmax %s3 : !sm
%y1 = dm.matmul %p, %v1 : (!sm, !km) -> !qm
%y = dm.reshape %y1 : (!qm) -> !y
`, attributes: "scale = 1.0"},
	{name: "no heads", types: "!q = tensor<5x8xE>\n!k = tensor<7x8xE>\n!s = tensor<5x7xE>\n!y = tensor<5x8xE>\n", lines: `%s = dm.einsum "ld,md->lm" %q, %k : (!q, !k) -> !s
` + soft + `%y = dm.einsum "lm,md->ld" %p, %v : (!s, !k) -> !y
`, attributes: "scale = 1.0"},
	{name: "one query, a batch of one", types: "!q = tensor<1x3x8xE>\n!k = tensor<1x3x7x8xE>\n!s = tensor<1x3x7xE>\n!y = tensor<1x3x8xE>\n", lines: `%s = dm.einsum "bhd,bhmd->bhm" %q, %k : (!q, !k) -> !s
` + soft + `%y = dm.einsum "bhm,bhmd->bhd" %p, %v : (!s, !k) -> !y
`, attributes: "scale = 1.0"},
	{name: "grouped heads as a letter", types: "!q = tensor<2x3x4x5x8xE>\n!k = tensor<2x3x7x8xE>\n!s = tensor<2x3x4x5x7xE>\n!y = tensor<2x3x4x5x8xE>\n", lines: `%s = dm.einsum "bhgld,bhmd->bhglm" %q, %k : (!q, !k) -> !s
` + soft + `%y = dm.einsum "bhglm,bhmd->bhgld" %p, %v : (!s, !k) -> !y
`, attributes: "scale = 1.0"},
	{name: "keys and values repeated for grouped heads", types: `!q = tensor<2x6x5x8xE>
!k = tensor<2x3x7x8xE>
!many = tensor<2x3x2x7x8xE>
!full = tensor<2x6x7x8xE>
!s = tensor<2x6x5x7xE>
!y = tensor<2x6x5x8xE>
`, lines: `%k1 = dm.broadcast %k, dims = [0, 1, 3, 4] : (!k) -> !many
%k2 = dm.reshape %k1 : (!many) -> !full
%v1 = dm.broadcast %v, dims = [0, 1, 3, 4] : (!k) -> !many
%v2 = dm.reshape %v1 : (!many) -> !full
%s = dm.einsum "bhld,bhmd->bhlm" %q, %k2 : (!q, !full) -> !s
` + soft + `%y = dm.einsum "bhlm,bhmd->bhld" %p, %v2 : (!s, !full) -> !y
`, attributes: "scale = 1.0"},
	{name: "one key head, by NumPy's broadcasting", types: "!q = tensor<2x3x5x8xE>\n!k = tensor<2x1x7x8xE>\n!s = tensor<2x3x5x7xE>\n!y = tensor<2x3x5x8xE>\n", lines: `%s = dm.matmul %q, %k, transpose_b = true : (!q, !k) -> !s
` + soft + `%y = dm.matmul %p, %v : (!s, !k) -> !y
`, attributes: "scale = 1.0"},
	{name: "values repeated along their depth", types: usual + "!v1 = tensor<2x3x7x1xE>\n", args: "= %q: !q, %k: !k, %v1: !v1", lines: product + soft + `%v = dm.broadcast %v1, dims = [0, 1, 2, 3] : (!v1) -> !k
` + values, attributes: "scale = 1.0"},
	{name: "a mask of keys", args: ", %mask: tensor<2x1x1x7xE>", lines: scaled("0.25") + `%s1 = dm.add %s, %mask : (!s, tensor<2x1x1x7xE>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 0.25"},
	{name: "a bias of every score, written out for a batch", args: ", %bias: tensor<3x5x7xE>", lines: scaled("0.25") + `%b1 = dm.broadcast %bias, dims = [1, 2, 3] : (tensor<3x5x7xE>) -> !s
%s1 = dm.add %b1, %s : !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 0.25"},
	{name: "a bias with its dimensions in another order", args: ", %bias: tensor<5x7x3xE>", lines: product + `%b1 = dm.transpose %bias, dims = [2, 0, 1] : (tensor<5x7x3xE>) -> tensor<3x5x7xE>
%s1 = dm.add %s, %b1 : (!s, tensor<3x5x7xE>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 1.0"},
	{name: "chosen, minus infinity elsewhere", args: ", %seen: tensor<2x1x1x7xi1>", lines: product + `%least = dm.constant dense<INF> : tensor<E>
%s1 = dm.select %seen, %s, %least : (tensor<2x1x1x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 1.0"},
	{name: "hidden where true, by a finite number, scaled afterwards", args: ", %hidden: tensor<2x5x7xi1>", lines: product + `%least = dm.constant dense<-40000.0> : !s
%h0 = dm.reshape %hidden : (tensor<2x5x7xi1>) -> tensor<2x1x5x7xi1>
%h = dm.broadcast %h0, dims = [0, 1, 2, 3] : (tensor<2x1x5x7xi1>) -> tensor<2x3x5x7xi1>
%s1 = dm.select %h, %least, %s : (tensor<2x3x5x7xi1>, !s, !s) -> !s
%c = dm.constant dense<0.25> : tensor<E>
%s2 = dm.mul %s1, %c : (!s, tensor<E>) -> !s
%p = dm.softmax %s2 : !s
` + values, attributes: "scale = 0.25"},
	{name: "queries that see nothing", lines: product + `%no = dm.constant dense<false> : tensor<1x1x1x7xi1>
%q0 = dm.constant dense<[[[[true], [false], [true], [true], [false]]]]> : tensor<1x1x5x1xi1>
%k0 = dm.constant dense<[[[[true, true, false, true, true, true, true]]]]> : tensor<1x1x1x7xi1>
%seen = dm.and %q0, %k0 : (tensor<1x1x5x1xi1>, tensor<1x1x1x7xi1>) -> tensor<1x1x5x7xi1>
%least = dm.constant dense<-10000.0> : tensor<E>
%s1 = dm.select %seen, %s, %least : (tensor<1x1x5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 1.0"},
	{name: "causal, of counted indices", lines: scaled("0.25") + `%i = dm.iota dim = 0 : tensor<5x7xi32>
%j = dm.iota dim = 1 : tensor<5x7xi32>
%shift = dm.constant dense<2> : tensor<i32>
%last = dm.add %i, %shift : (tensor<5x7xi32>, tensor<i32>) -> tensor<5x7xi32>
%seen = dm.compare le %j, %last : (tensor<5x7xi32>, tensor<5x7xi32>) -> tensor<5x7xi1>
%least = dm.constant dense<-60000.0> : tensor<E>
%s1 = dm.select %seen, %s, %least : (tensor<5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 0.25, causal = true"},
	{name: "causal, of indices in a type that could wrap, which is a mask like others", lines: product + `%i = dm.iota dim = 0 : tensor<5x1xi8>
%j = dm.iota dim = 1 : tensor<1x7xi8>
%seen = dm.compare le %j, %i : (tensor<1x7xi8>, tensor<5x1xi8>) -> tensor<5x7xi1>
%least = dm.constant dense<INF> : tensor<E>
%s1 = dm.select %seen, %s, %least : (tensor<5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 1.0"},
	{name: "causal, later keys hidden, added", lines: product + `%i0 = dm.iota dim = 0 : tensor<5xi64>
%i = dm.reshape %i0 : (tensor<5xi64>) -> tensor<5x1xi64>
%j = dm.iota dim = 0 : tensor<7xi64>
%d = dm.sub %j, %i : (tensor<7xi64>, tensor<5x1xi64>) -> tensor<5x7xi64>
%two = dm.constant dense<2> : tensor<i64>
%later = dm.compare gt %d, %two : (tensor<5x7xi64>, tensor<i64>) -> tensor<5x7xi1>
%least = dm.constant dense<INF> : tensor<E>
%zero = dm.constant dense<0.0> : tensor<E>
%m = dm.select %later, %least, %zero : (tensor<5x7xi1>, tensor<E>, tensor<E>) -> tensor<5x7xE>
%s1 = dm.add %s, %m : (!s, tensor<5x7xE>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 1.0, causal = true"},
	{name: "causal, added and scaled afterwards", lines: product + `%i = dm.iota dim = 0 : tensor<5x7xi32>
%j = dm.iota dim = 1 : tensor<5x7xi32>
%two = dm.constant dense<2> : tensor<i32>
%last = dm.add %i, %two : (tensor<5x7xi32>, tensor<i32>) -> tensor<5x7xi32>
%seen = dm.compare ge %last, %j : (tensor<5x7xi32>, tensor<5x7xi32>) -> tensor<5x7xi1>
%zero = dm.constant dense<0.0> : tensor<E>
%least = dm.constant dense<-40000.0> : tensor<E>
%m = dm.select %seen, %zero, %least : (tensor<5x7xi1>, tensor<E>, tensor<E>) -> tensor<5x7xE>
%s1 = dm.add %s, %m : (!s, tensor<5x7xE>) -> !s
%c = dm.constant dense<0.25> : tensor<E>
%s2 = dm.mul %s1, %c : (!s, tensor<E>) -> !s
%p = dm.softmax %s2 : !s
` + values, attributes: "scale = 0.25, causal = true"},
	{name: "causal, of indices that are floats", lines: product + `%i = dm.iota dim = 0 : tensor<5x7xf32>
%j = dm.iota dim = 1 : tensor<5x7xf32>
%n = dm.constant dense<2.0> : tensor<f32>
%a = dm.add %i, %n : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
%seen = dm.compare ge %a, %j : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
%least = dm.constant dense<INF> : tensor<E>
%s1 = dm.select %seen, %s, %least : (tensor<5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 1.0, causal = true"},
	{name: "causal, of unsigned indices", lines: product + `%i = dm.iota dim = 0 : tensor<5x7xui32>
%j = dm.iota dim = 1 : tensor<5x7xui32>
%n = dm.constant dense<2> : tensor<ui32>
%a = dm.add %i, %n : (tensor<5x7xui32>, tensor<ui32>) -> tensor<5x7xui32>
%seen = dm.compare ge %a, %j : (tensor<5x7xui32>, tensor<5x7xui32>) -> tensor<5x7xi1>
%least = dm.constant dense<INF> : tensor<E>
%s1 = dm.select %seen, %s, %least : (tensor<5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 1.0, causal = true"},
	{name: "the difference of unsigned indices, which is never below zero", lines: product + `%i = dm.iota dim = 0 : tensor<5x7xui32>
%j = dm.iota dim = 1 : tensor<5x7xui32>
%n = dm.constant dense<2> : tensor<ui32>
%a = dm.add %i, %n : (tensor<5x7xui32>, tensor<ui32>) -> tensor<5x7xui32>
%d = dm.sub %a, %j : tensor<5x7xui32>
%z = dm.constant dense<0> : tensor<ui32>
%seen = dm.compare ge %d, %z : (tensor<5x7xui32>, tensor<ui32>) -> tensor<5x7xi1>
%least = dm.constant dense<INF> : tensor<E>
%s1 = dm.select %seen, %s, %least : (tensor<5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 1.0"},
	{name: "indices and a fraction", lines: product + `%i = dm.iota dim = 0 : tensor<5x7xf32>
%j = dm.iota dim = 1 : tensor<5x7xf32>
%n = dm.constant dense<2.5> : tensor<f32>
%a = dm.add %i, %n : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
%seen = dm.compare ge %a, %j : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
%least = dm.constant dense<INF> : tensor<E>
%s1 = dm.select %seen, %s, %least : (tensor<5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 1.0"},
	{name: "indices and a fraction of a key", lines: product + `%i = dm.iota dim = 0 : tensor<5x7xf64>
%j = dm.iota dim = 1 : tensor<5x7xf64>
%n = dm.constant dense<0.5> : tensor<f64>
%m = dm.constant dense<2.0> : tensor<f64>
%a = dm.add %i, %m : (tensor<5x7xf64>, tensor<f64>) -> tensor<5x7xf64>
%b = dm.add %j, %n : (tensor<5x7xf64>, tensor<f64>) -> tensor<5x7xf64>
%seen = dm.compare ge %a, %b : (tensor<5x7xf64>, tensor<5x7xf64>) -> tensor<5x7xi1>
%least = dm.constant dense<INF> : tensor<E>
%s1 = dm.select %seen, %s, %least : (tensor<5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 1.0"},
	{name: "indices so far from zero that they wrap", lines: product + `%i = dm.iota dim = 0 : tensor<5x7xi32>
%j = dm.iota dim = 1 : tensor<5x7xi32>
%n = dm.constant dense<2147483645> : tensor<i32>
%m = dm.constant dense<2147483647> : tensor<i32>
%a = dm.add %i, %m : (tensor<5x7xi32>, tensor<i32>) -> tensor<5x7xi32>
%b = dm.add %j, %n : (tensor<5x7xi32>, tensor<i32>) -> tensor<5x7xi32>
%seen = dm.compare ge %a, %b : (tensor<5x7xi32>, tensor<5x7xi32>) -> tensor<5x7xi1>
%least = dm.constant dense<INF> : tensor<E>
%s1 = dm.select %seen, %s, %least : (tensor<5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 1.0"},
	{name: "indices so far from zero that they are rounded", lines: product + `%i = dm.iota dim = 0 : tensor<5x7xf32>
%j = dm.iota dim = 1 : tensor<5x7xf32>
%n = dm.constant dense<16777216.0> : tensor<f32>
%m = dm.constant dense<16777218.0> : tensor<f32>
%a = dm.add %i, %m : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
%b = dm.add %j, %n : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
%seen = dm.compare ge %a, %b : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xi1>
%least = dm.constant dense<INF> : tensor<E>
%s1 = dm.select %seen, %s, %least : (tensor<5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 1.0"},
	{name: "causal, as a table", types: "!q = tensor<3x4x8xE>\n!k = tensor<3x4x8xE>\n!s = tensor<3x4x4xE>\n!y = tensor<3x4x8xE>\n", lines: `%s = dm.matmul %q, %k, transpose_b = true : (!q, !k) -> !s
%table = dm.constant dense<[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]]> : tensor<4x4xi1>
%least = dm.constant dense<-60000.0> : !s
%s1 = dm.select %table, %s, %least : (tensor<4x4xi1>, !s, !s) -> !s
%p = dm.softmax %s1 : !s
%y = dm.matmul %p, %v : (!s, !k) -> !y
`, attributes: "scale = 1.0, causal = true"},
	{name: "causal and a mask of keys, both minus infinity", args: ", %keys: tensor<2x1x1x7xi1>", lines: product + `%i = dm.iota dim = 2 : tensor<1x1x5x1xi32>
%j = dm.iota dim = 3 : tensor<1x1x1x7xi32>
%two = dm.constant dense<2> : tensor<i32>
%i2 = dm.add %i, %two : (tensor<1x1x5x1xi32>, tensor<i32>) -> tensor<1x1x5x1xi32>
%c = dm.compare ge %i2, %j : (tensor<1x1x5x1xi32>, tensor<1x1x1x7xi32>) -> tensor<1x1x5x7xi1>
%seen = dm.and %c, %keys : (tensor<1x1x5x7xi1>, tensor<2x1x1x7xi1>) -> tensor<2x1x5x7xi1>
%least = dm.constant dense<INF> : tensor<E>
%s1 = dm.select %seen, %s, %least : (tensor<2x1x5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 1.0, causal = true"},
	{name: "causal and a mask of keys, finite", args: ", %keys: tensor<2x1x1x7xi1>", lines: product + `%i = dm.iota dim = 2 : tensor<1x1x5x1xi32>
%j = dm.iota dim = 3 : tensor<1x1x1x7xi32>
%c = dm.compare ge %i, %j : (tensor<1x1x5x1xi32>, tensor<1x1x1x7xi32>) -> tensor<1x1x5x7xi1>
%seen = dm.and %c, %keys : (tensor<1x1x5x7xi1>, tensor<2x1x1x7xi1>) -> tensor<2x1x5x7xi1>
%least = dm.constant dense<-60000.0> : tensor<E>
%s1 = dm.select %seen, %s, %least : (tensor<2x1x5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s1 : !s
` + values, attributes: "scale = 1.0"},
	{name: "causal, finite, behind a bias of the distance", lines: product + later + distance + `%s1 = dm.add %s, %bias : (!s, !bias) -> !s
%s2 = dm.select %seen, %s1, %least : (tensor<5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s2 : !s
` + values, types: usual + biases, attributes: "scale = 1.0, causal = true"},
	{name: "causal, finite, before a bias of the distance", lines: product + later + distance + `%s1 = dm.select %seen, %s, %least : (tensor<5x7xi1>, !s, tensor<E>) -> !s
%s2 = dm.add %bias, %s1 : (!bias, !s) -> !s
%p = dm.softmax %s2 : !s
` + values, types: usual + biases, attributes: "scale = 1.0, causal = true"},
	{name: "causal, finite, in a bias of the distance", lines: product + later + distance + `%m = dm.select %seen, %bias, %least : (tensor<5x7xi1>, !bias, tensor<E>) -> !bias
%m1 = dm.reshape %m : (!bias) -> tensor<1x3x5x7xE>
%s1 = dm.add %s, %m1 : (!s, tensor<1x3x5x7xE>) -> !s
%p = dm.softmax %s1 : !s
` + values, types: usual + biases, attributes: "scale = 1.0, causal = true"},
	{name: "causal, finite, added to a bias from a table", args: ", %table: tensor<9x3xE>", lines: product + later + `%d = dm.sub %i2, %j : (tensor<5x1xi32>, tensor<1x7xi32>) -> tensor<5x7xi32>
%low = dm.constant dense<0> : tensor<i32>
%d1 = dm.max %d, %low : (tensor<5x7xi32>, tensor<i32>) -> tensor<5x7xi32>
%b = dm.embedding %table, %d1 : (tensor<9x3xE>, tensor<5x7xi32>) -> tensor<5x7x3xE>
%bias = dm.transpose %b, dims = [2, 0, 1] : (tensor<5x7x3xE>) -> !bias
%z = dm.constant dense<0.0> : tensor<E>
%late = dm.select %seen, %z, %least : (tensor<5x7xi1>, tensor<E>, tensor<E>) -> tensor<5x7xE>
%m = dm.add %bias, %late : (!bias, tensor<5x7xE>) -> !bias
%s1 = dm.add %s, %m : (!s, !bias) -> !s
%p = dm.softmax %s1 : !s
` + values, types: usual + biases, attributes: "scale = 1.0, causal = true"},
	{name: "causal, minus infinity, in a bias that may mask", args: ", %bias: tensor<3x5x7xE>", lines: product + later + `%none = dm.constant dense<INF> : tensor<E>
%m = dm.select %seen, %bias, %none : (tensor<5x7xi1>, !bias, tensor<E>) -> !bias
%s1 = dm.add %s, %m : (!s, !bias) -> !s
%p = dm.softmax %s1 : !s
` + values, types: usual + biases, attributes: "scale = 1.0, causal = true"},
	{name: "causal, finite, in a bias that may mask, which is a mask like others", args: ", %bias: tensor<3x5x7xE>", lines: product + later + `%m = dm.select %seen, %bias, %least : (tensor<5x7xi1>, !bias, tensor<E>) -> !bias
%s1 = dm.add %s, %m : (!s, !bias) -> !s
%p = dm.softmax %s1 : !s
` + values, types: usual + biases, attributes: "scale = 1.0"},
	{name: "causal, finite, beside a bias that may mask", args: ", %bias: tensor<3x5x7xE>", lines: product + later + `%s1 = dm.add %s, %bias : (!s, !bias) -> !s
%s2 = dm.select %seen, %s1, %least : (tensor<5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s2 : !s
` + values, types: usual + biases, why: "a finite number beside another mask"},
	{name: "causal, finite, beside a bias that masks", lines: product + later + distance + `%c = dm.constant dense<20000.0> : tensor<E>
%bias1 = dm.mul %bias, %c : (!bias, tensor<E>) -> !bias
%s1 = dm.add %s, %bias1 : (!s, !bias) -> !s
%s2 = dm.select %seen, %s1, %least : (tensor<5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s2 : !s
` + values, types: usual + biases, why: "a finite number beside another mask"},
	{name: "dropout", lines: scaled("0.25") + `%p0 = dm.softmax %s : !s
%p = dm.dropout %p0, rate = 0.25, seed = 3 : !s
` + values, attributes: "scale = 0.25, dropout = 0.25, seed = 3"},
	{name: "dropout of a step", lines: scaled("0.25") + `%p0 = dm.softmax %s : !s
%step = dm.constant dense<9> : tensor<i64>
%p = dm.dropout %p0, %step, rate = 0.25, seed = 3 : (!s, tensor<i64>) -> !s
` + values, attributes: "scale = 0.25, dropout = 0.25, seed = 3"},
	{name: "scores in f32", types: usual + "!w = tensor<2x3x5x7xf32>\n", lines: product + `%s1 = dm.convert %s : (!s) -> !w
%c = dm.constant dense<0.25> : tensor<f32>
%s2 = dm.mul %s1, %c : (!w, tensor<f32>) -> !w
%p0 = dm.softmax %s2 : !w
%p = dm.convert %p0 : (!w) -> !s
` + values, attributes: "scale = 0.25"},
	{name: "scores accumulated in f64", types: usual + "!w = tensor<2x3x5x7xf64>\n", lines: `%s = dm.einsum "bhqd,bhkd->bhqk" %q, %k : (!q, !k) -> !w
%p0 = dm.softmax %s : !w
%p = dm.convert %p0 : (!w) -> !s
` + values, attributes: "scale = 1.0"},
	{name: "all in f64 and back", types: usual + "!wq = tensor<2x3x5x8xf64>\n!wk = tensor<2x3x7x8xf64>\n!w = tensor<2x3x5x7xf64>\n", lines: `%q1 = dm.convert %q : (!q) -> !wq
%k1 = dm.convert %k : (!k) -> !wk
%v1 = dm.convert %v : (!k) -> !wk
%s = dm.einsum "bhqd,bhkd->bhqk" %q1, %k1 : (!wq, !wk) -> !w
%p = dm.softmax %s : !w
%y0 = dm.einsum "bhqk,bhkd->bhqd" %p, %v1 : (!w, !wk) -> !wq
%y = dm.convert %y0 : (!wq) -> !y
`, attributes: "scale = 1.0"},
	{name: "a kernel between the contractions", lines: product + `%p = dm.kernel -> !s {
  %c = dm.constant dense<0.25> : tensor<E>
  %s1 = dm.mul %s, %c : (!s, tensor<E>) -> !s
  %p0 = dm.softmax %s1 : !s
  dm.yield %p0 : !s
}
` + values, attributes: "scale = 0.25"},

	// What is no attention, or none that dm.attention expresses.
	{name: "probabilities returned", back: "%p: !s", lines: product + soft + values, why: "used elsewhere"},
	{name: "scores used again", back: "%s: !s", lines: product + soft + values, why: "used elsewhere"},
	{name: "a softmax of the queries", lines: product + `%p = dm.softmax %s, dim = 2 : !s
` + values, why: "the softmax is not over the keys"},
	{name: "a hyperbolic tangent between", lines: product + `%s1 = dm.tanh %s : !s
%p = dm.softmax %s1 : !s
` + values, why: "dm.tanh is between"},
	{name: "a scale of every head", args: ", %c: tensor<3x1x1xE>", lines: product + `%s1 = dm.mul %s, %c : (!s, tensor<3x1x1xE>) -> !s
%p = dm.softmax %s1 : !s
` + values, why: "multiplied by a value that is not a constant number"},
	{name: "two masks", args: ", %m: tensor<7xE>, %n: tensor<5x7xE>", lines: product + `%s1 = dm.add %s, %m : (!s, tensor<7xE>) -> !s
%s2 = dm.add %s1, %n : (!s, tensor<5x7xE>) -> !s
%p = dm.softmax %s2 : !s
` + values, attributes: "scale = 1.0"},
	{name: "a bias beside a choice of minus infinity", args: ", %m: tensor<3x5x7xE>", lines: product + `%seen = dm.constant dense<[true, false, true, true, false, true, true]> : tensor<7xi1>
%least = dm.constant dense<INF> : tensor<E>
%s1 = dm.add %s, %m : (!s, tensor<3x5x7xE>) -> !s
%s2 = dm.select %seen, %s1, %least : (tensor<7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s2 : !s
` + values, attributes: "scale = 1.0"},
	{name: "two choices of what a bias is added to", args: ", %b: tensor<7xE>", lines: product + `%m = dm.sin %b : tensor<7xE>
%seen = dm.constant dense<[true, false, true, true, false, true, true]> : tensor<7xi1>
%masked = dm.constant dense<[[true], [false], [false], [false], [false]]> : tensor<5x1xi1>
%least = dm.constant dense<LOWEST> : tensor<E>
%s1 = dm.add %s, %m : (!s, tensor<7xE>) -> !s
%s2 = dm.select %seen, %s1, %least : (tensor<7xi1>, !s, tensor<E>) -> !s
%s3 = dm.select %masked, %least, %s2 : (tensor<5x1xi1>, tensor<E>, !s) -> !s
%p = dm.softmax %s3 : !s
` + values, attributes: "scale = 1.0"},
	{name: "choices of a number and of minus infinity, of what a bias is added to", args: ", %m: tensor<7xE>", lines: product + `%b = dm.sin %m : tensor<7xE>
%seen = dm.constant dense<[true, false, true, true, false, true, true]> : tensor<7xi1>
%masked = dm.constant dense<[[true], [false], [false], [false], [false]]> : tensor<5x1xi1>
%none = dm.constant dense<INF> : tensor<E>
%least = dm.constant dense<-16384.0> : tensor<E>
%s1 = dm.add %s, %b : (!s, tensor<7xE>) -> !s
%s2 = dm.select %masked, %least, %s1 : (tensor<5x1xi1>, tensor<E>, !s) -> !s
%s3 = dm.select %seen, %s2, %none : (tensor<7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s3 : !s
` + values, attributes: "scale = 1.0"},
	{name: "a bias behind a choice of a number", args: ", %b: tensor<7xE>", lines: product + `%m = dm.sin %b : tensor<7xE>
%seen = dm.constant dense<[true, false, true, true, false, true, true]> : tensor<7xi1>
%least = dm.constant dense<-16384.0> : tensor<E>
%s1 = dm.select %seen, %s, %least : (tensor<7xi1>, !s, tensor<E>) -> !s
%s2 = dm.add %s1, %m : (!s, tensor<7xE>) -> !s
%p = dm.softmax %s2 : !s
` + values, why: "the number -16384 beside another mask"},
	{name: "a causal mask of a great number beside a bias that hides nothing", args: ", %b: tensor<5x7xE>", lines: product + `%m = dm.tanh %b : tensor<5x7xE>
%i = dm.iota dim = 0 : tensor<5x7xi32>
%j = dm.iota dim = 1 : tensor<5x7xi32>
%two = dm.constant dense<2> : tensor<i32>
%last = dm.add %i, %two : (tensor<5x7xi32>, tensor<i32>) -> tensor<5x7xi32>
%seen = dm.compare ge %last, %j : (tensor<5x7xi32>, tensor<5x7xi32>) -> tensor<5x7xi1>
%least = dm.constant dense<LOWEST> : tensor<E>
%s1 = dm.add %s, %m : (!s, tensor<5x7xE>) -> !s
%s2 = dm.select %seen, %s1, %least : (tensor<5x7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s2 : !s
` + values, attributes: "scale = 1.0, causal = true"},
	{name: "a choice of a small number beside a bias", args: ", %m: tensor<5x7xE>", lines: product + `%seen = dm.constant dense<[true, false, true, true, false, true, true]> : tensor<7xi1>
%least = dm.constant dense<-16384.0> : tensor<E>
%s1 = dm.add %s, %m : (!s, tensor<5x7xE>) -> !s
%s2 = dm.select %seen, %s1, %least : (tensor<7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s2 : !s
` + values, why: "the mask is the number -16384 beside another mask"},
	{name: "a mask that is scaled", args: ", %m: tensor<7xE>", lines: product + `%s1 = dm.add %s, %m : (!s, tensor<7xE>) -> !s
%c = dm.constant dense<0.25> : tensor<E>
%s2 = dm.mul %s1, %c : (!s, tensor<E>) -> !s
%p = dm.softmax %s2 : !s
` + values, attributes: "scale = 0.25"},
	{name: "a choice of zero", args: ", %seen: tensor<7xi1>", lines: product + `%zero = dm.constant dense<0.0> : tensor<E>
%s1 = dm.select %seen, %s, %zero : (tensor<7xi1>, !s, tensor<E>) -> !s
%p = dm.softmax %s1 : !s
` + values, why: "replaced by 0, which is not a mask"},
	{name: "divided by the sums of queries", lines: product + `%e = dm.exp %s : !s
%n = dm.reduce add %e, dims = [2], keep_dims = true : (!s) -> tensor<2x3x1x7xE>
%p = dm.div %e, %n : (!s, tensor<2x3x1x7xE>) -> !s
` + values, why: ""},
	{name: "divided by the sums of whole numbers", types: usual + "!w = tensor<2x3x5x7xi32>\n!w1 = tensor<2x3x5x1xi32>\n", lines: product + `%e = dm.exp %s : !s
%e1 = dm.convert %e : (!s) -> !w
%n1 = dm.reduce add %e1, dims = [3], keep_dims = true : (!w) -> !w1
%n = dm.convert %n1 : (!w1) -> !one
%p = dm.div %e, %n : (!s, !one) -> !s
` + values, why: ""},
	{name: "divided by sums that were rounded", types: usual + "!w1 = tensor<2x3x5x1xf8E5M2>\n", lines: product + `%e = dm.exp %s : !s
%n0 = dm.reduce add %e, dims = [3], keep_dims = true : (!s) -> !one
%n1 = dm.convert %n0 : (!one) -> !w1
%n = dm.convert %n1 : (!w1) -> !one
%p = dm.div %e, %n : (!s, !one) -> !s
` + values, why: ""},
	{name: "times an inverse that was a whole number", types: usual + "!w1 = tensor<2x3x5x1xi32>\n", lines: product + `%e = dm.exp %s : !s
%n = dm.reduce add %e, dims = [3], keep_dims = true : (!s) -> !one
%unit = dm.constant dense<1.0> : tensor<E>
%i = dm.div %unit, %n : (tensor<E>, !one) -> !one
%i1 = dm.convert %i : (!one) -> !w1
%i2 = dm.convert %i1 : (!w1) -> !one
%p = dm.mul %e, %i2 : (!s, !one) -> !s
` + values, why: ""},
	{name: "divided twice", lines: product + soft + `%n = dm.constant dense<2.0> : !one
%o = dm.einsum "bhqk,bhkd->bhqd" %p, %v : (!s, !k) -> !y
%y = dm.div %o, %n : (!y, !one) -> !y
`, attributes: "scale = 1.0"},
	{name: "a number in place of the product", lines: soft + values, args: "= %s: !s, %v: !k", why: ""},
	{name: "rounded on the way", types: usual + "!n = tensor<2x3x5x7xf8E5M2>\n", lines: product + `%s1 = dm.convert %s : (!s) -> !n
%s2 = dm.convert %s1 : (!n) -> !s
%p = dm.softmax %s2 : !s
` + values, why: "rounded to f8E5M2"},
	{name: "too deep", types: strings.ReplaceAll(usual, "x8xE", "x257xE"), lines: product + soft + values, why: "a depth of 257"},
	{name: "dropout in another order", types: usual + "!t = tensor<2x5x3x7xE>\n", lines: product + `%p0 = dm.softmax %s : !s
%p1 = dm.transpose %p0, dims = [0, 2, 1, 3] : (!s) -> !t
%p2 = dm.dropout %p1, rate = 0.25, seed = 3 : !t
%y = dm.einsum "bqhk,bhkd->bhqd" %p2, %v : (!t, !k) -> !y
`, why: "dropout draws its numbers in another order"},
	{name: "keys of other heads than values", types: usual, args: ", %w: tensor<2x7x8xE>", lines: product + soft + `%y = dm.einsum "bhqk,bkd->bhqd" %p, %w : (!s, tensor<2x7x8xE>) -> !y
`, why: "not shared by the same heads"},
	{name: "a causal mask that is scaled away", lines: product + `%i = dm.iota dim = 0 : tensor<5x7xi32>
%j = dm.iota dim = 1 : tensor<5x7xi32>
%two = dm.constant dense<2> : tensor<i32>
%last = dm.add %i, %two : (tensor<5x7xi32>, tensor<i32>) -> tensor<5x7xi32>
%seen = dm.compare ge %last, %j : (tensor<5x7xi32>, tensor<5x7xi32>) -> tensor<5x7xi1>
%zero = dm.constant dense<0.0> : tensor<E>
%least = dm.constant dense<-40000.0> : tensor<E>
%m = dm.select %seen, %zero, %least : (tensor<5x7xi1>, tensor<E>, tensor<E>) -> tensor<5x7xE>
%s1 = dm.add %s, %m : (!s, tensor<5x7xE>) -> !s
%c = dm.constant dense<0.0009765625> : tensor<E>
%s2 = dm.mul %s1, %c : (!s, tensor<E>) -> !s
%p = dm.softmax %s2 : !s
` + values, attributes: "scale = 0.0009765625"},
	{name: "a causal mask that is turned round", lines: product + `%i = dm.iota dim = 0 : tensor<5x7xi32>
%j = dm.iota dim = 1 : tensor<5x7xi32>
%two = dm.constant dense<2> : tensor<i32>
%last = dm.add %i, %two : (tensor<5x7xi32>, tensor<i32>) -> tensor<5x7xi32>
%seen = dm.compare ge %last, %j : (tensor<5x7xi32>, tensor<5x7xi32>) -> tensor<5x7xi1>
%zero = dm.constant dense<0.0> : tensor<E>
%least = dm.constant dense<-40000.0> : tensor<E>
%m = dm.select %seen, %zero, %least : (tensor<5x7xi1>, tensor<E>, tensor<E>) -> tensor<5x7xE>
%s1 = dm.add %s, %m : (!s, tensor<5x7xE>) -> !s
%c = dm.constant dense<-1.0> : tensor<E>
%s2 = dm.mul %s1, %c : (!s, tensor<E>) -> !s
%p = dm.softmax %s2 : !s
` + values, why: "the mask is scaled by -1"},
	{name: "a causal table that is added and scaled away", types: "!q = tensor<3x2x8xE>\n!k = tensor<3x2x8xE>\n!s = tensor<3x2x2xE>\n!y = tensor<3x2x8xE>\n", lines: `%s = dm.matmul %q, %k, transpose_b = true : (!q, !k) -> !s
%table = dm.constant dense<[[0.0, -20000.0], [0.0, 0.0]]> : tensor<2x2xE>
%s1 = dm.add %s, %table : (!s, tensor<2x2xE>) -> !s
%c = dm.constant dense<0.125> : tensor<E>
%s2 = dm.mul %s1, %c : (!s, tensor<E>) -> !s
%p = dm.softmax %s2 : !s
%y = dm.matmul %p, %v : (!s, !k) -> !y
`, attributes: "scale = 0.125"},
	{name: "accumulated in half precision", lines: product + soft + strings.Replace(values, "%v :", "%v, accumulate = f16 :", 1), why: "-"},
}
