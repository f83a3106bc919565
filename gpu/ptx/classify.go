package ptx

import (
	"math/bits"
	"slices"
	"strings"
)

// prefixes are kinds by the start of names, the first that fits.
var prefixes = []struct {
	name string
	kind opKind
}{
	{"bra", opBranch},
	{"ret", opExit},
	{"exit", opExit},
	{"trap", opExit},
	{"bar.warp", opWarp},
	{"bar", opBarrier},
	{"barrier.cluster", opCluster},
	{"barrier", opBarrier},
	{"cp.async.bulk.commit_group", opBulkCommit},
	{"cp.async.bulk.wait_group", opBulkWait},
	{"cp.async.bulk.prefetch", opNone},
	{"cp.async.bulk", opBulk},
	{"cp.async.commit_group", opCopyCommit},
	{"cp.async.wait_group", opCopyWait},
	{"cp.async.wait_all", opCopyWait},
	{"cp.async.mbarrier", opForeign},
	{"cp.async", opCopy},
	{"mbarrier.init", opInit},
	{"mbarrier.arrive", opArrive},
	{"mbarrier.expect_tx", opArrive},
	{"mbarrier.try_wait", opWait},
	{"mbarrier.test_wait", opWait},
	{"mbarrier", opForeign},
	{"tcgen05", opForeign},
	{"st.async", opForeign},
	{"red.async", opForeign},
	{"red", opReduce},
	{"elect.sync", opElect},
	{"fence", opFence},
	{"wgmma.mma_async", opProduct},
	{"wgmma.fence", opProductFence},
	{"wgmma.commit_group", opProductCommit},
	{"wgmma.wait_group", opProductWait},
	{"setmaxnreg", opRegisters},
	{"griddepcontrol", opDependency},
	{"prefetch.tensormap", opPrefetch},
	{"ldmatrix", opMatrix},
	{"stmatrix", opWarp},
	{"mma", opWarp},
	{"shfl", opWarp},
	{"vote", opWarp},
	{"match", opWarp},
	{"ld", opLoad},
	{"st", opStore},
	{"call", opCall},
	{"membar", opFence},
}

// classify fills in what the name of an instruction says.
func (o *op) classify() {
	for _, p := range prefixes {
		if o.starts(p.name) {
			o.kind = p.kind
			break
		}
	}
	typ := o.words[len(o.words)-1]
	if i := slices.IndexFunc(o.words, func(w string) bool { return strings.HasPrefix(w, "shared") }); i >= 0 {
		o.space = "shared"
	}
	for _, s := range []string{"global", "param", "local", "const"} {
		if o.space == "" && o.has(s) {
			o.space = s
		}
	}
	switch o.kind {
	case opReduce:
		if o.space != "global" {
			o.kind = opUnknown // its results are not known, and are no registers
		}
		fallthrough
	case opLoad, opStore:
		o.bytes = typeBytes(typ)
		for _, v := range []struct {
			word string
			n    int
		}{{"v2", 2}, {"v4", 4}, {"v8", 8}} {
			if o.has(v.word) {
				o.bytes *= v.n
			}
		}
	case opUnknown:
		o.arithmetic(typ)
	}
}

// extend is a value of a type in 64 bits.
func extend(typ string, v uint64) uint64 { return extender(typ)(v) }

// extender is extend for one type.
func extender(typ string) func(v uint64) uint64 {
	n := typeBytes(typ) * 8
	switch {
	case n == 0 || n == 64:
		return func(v uint64) uint64 { return v }
	case typ[0] == 's':
		return func(v uint64) uint64 { return uint64(int64(v<<(64-n)) >> (64 - n)) }
	}
	return func(v uint64) uint64 { return v & (1<<n - 1) }
}

// arithmetic gives integer instructions their function; operands and results are
// extended to 64 bits as their type says.
func (o *op) arithmetic(typ string) {
	if typ == "" { // a name that ends with a dot
		return
	}
	if typ != "pred" && (typeBytes(typ) == 0 || strings.Contains(typ, "f")) && o.words[0] != "setp" {
		if o.words[0] == "mov" && (typ == "f32" || typ == "f64") {
			o.kind, o.f = opALU, func(a, _, _ uint64) uint64 { return a }
		}
		return
	}
	ext := extender(typ)
	signed := typ[0] == 's'
	less := func(a, b uint64) bool {
		if signed {
			return int64(a) < int64(b)
		}
		return a < b
	}
	truth := func(b bool) uint64 {
		if b {
			return 1
		}
		return 0
	}
	size := uint64(typeBytes(typ) * 8)
	var f func(a, b, c uint64) uint64
	result := typ
	switch o.words[0] {
	case "mov", "cvta":
		f = func(a, _, _ uint64) uint64 { return a }
		if o.words[0] == "cvta" && o.space == "shared" {
			if o.has("to") {
				f = func(a, _, _ uint64) uint64 { return a - sharedGen }
			} else {
				f = func(a, _, _ uint64) uint64 { return a + sharedGen }
			}
		}
	case "add":
		f = func(a, b, _ uint64) uint64 { return a + b }
	case "sub":
		f = func(a, b, _ uint64) uint64 { return a - b }
	case "mul", "mad":
		mad := o.words[0] == "mad"
		add := func(v, c uint64) uint64 {
			if mad {
				return v + c
			}
			return v
		}
		switch {
		case o.has("wide"):
			result = "b64"
			if size == 16 {
				result = "b32"
			}
			f = func(a, b, c uint64) uint64 { return add(a*b, c) }
		case o.has("lo"):
			f = func(a, b, c uint64) uint64 { return add(a*b, c) }
		case o.has("hi") && size <= 32:
			f = func(a, b, c uint64) uint64 {
				if signed {
					return add(uint64(int64(a)*int64(b)>>size), c)
				}
				return add(a*b>>size, c)
			}
		case o.has("hi") && size == 64:
			f = func(a, b, c uint64) uint64 {
				hi, _ := bits.Mul64(a, b)
				if signed {
					hi -= uint64(int64(a)>>63)&b + uint64(int64(b)>>63)&a
				}
				return add(hi, c)
			}
		}
	case "div", "rem":
		rem := o.words[0] == "rem"
		f = func(a, b, _ uint64) uint64 {
			switch {
			case b == 0:
				return ^uint64(0)
			case signed && int64(b) == -1:
				if rem {
					return 0
				}
				return -a
			case signed && rem:
				return uint64(int64(a) % int64(b))
			case signed:
				return uint64(int64(a) / int64(b))
			case rem:
				return a % b
			}
			return a / b
		}
	case "min":
		f = func(a, b, _ uint64) uint64 {
			if less(a, b) {
				return a
			}
			return b
		}
	case "max":
		f = func(a, b, _ uint64) uint64 {
			if less(a, b) {
				return b
			}
			return a
		}
	case "neg":
		f = func(a, _, _ uint64) uint64 { return -a }
	case "abs":
		f = func(a, _, _ uint64) uint64 {
			if int64(a) < 0 {
				return -a
			}
			return a
		}
	case "and":
		f, o.eager = func(a, b, _ uint64) uint64 { return a & b }, '&'
	case "or":
		f, o.eager = func(a, b, _ uint64) uint64 { return a | b }, '|'
	case "xor":
		f = func(a, b, _ uint64) uint64 { return a ^ b }
	case "mapa":
		if o.has("shared::cluster") && typ == "u32" {
			f = peerAddress
		}
	case "not":
		f = func(a, _, _ uint64) uint64 { return ^a }
		if typ == "pred" {
			f = func(a, _, _ uint64) uint64 { return a ^ 1 }
		}
	case "shl":
		f = func(a, b, _ uint64) uint64 { return a << min(b&0xffffffff, 64) }
	case "shr":
		f = func(a, b, _ uint64) uint64 {
			if signed {
				return uint64(int64(a) >> min(b&0xffffffff, 63))
			}
			return a >> min(b&0xffffffff, 64)
		}
	case "selp":
		o.kind = opSelect
		return
	case "bfi":
		if len(o.in.Args) != 5 {
			return
		}
		at, ok := number(o.in.Args[3].Text)
		n, known := number(o.in.Args[4].Text)
		if !ok || !known || at > 63 || n > 63 {
			return
		}
		field := uint64(1<<n-1) << at
		f = func(a, b, _ uint64) uint64 { return b&^field | a<<at&field }
	case "prmt":
		if len(o.words) != 2 {
			return
		}
		f = func(a, b, c uint64) (v uint64) {
			all := a&0xffffffff | b<<32
			for i := range 4 {
				sel := c >> (4 * i)
				x := all >> (sel & 7 * 8) & 255
				if sel&8 != 0 {
					x = uint64(int8(x)>>7) & 255
				}
				v |= x << (8 * i)
			}
			return v
		}
	case "bfe":
		f = func(a, b, c uint64) uint64 {
			b, c = b&255, c&255
			if c == 0 || b > 63 {
				return 0
			}
			c = min(c, 64-b)
			v := a >> b & (1<<c - 1)
			if signed {
				return uint64(int64(v<<(64-c)) >> (64 - c))
			}
			return v
		}
	case "popc":
		f = func(a, _, _ uint64) uint64 { return uint64(bits.OnesCount64(a)) }
	case "cvt":
		if from := o.words[len(o.words)-2]; !strings.Contains(typ, "f") && typeBytes(from) > 0 && !strings.Contains(from, "f") && !o.has("sat") {
			to := extender(from) // the type of the result is the last but one
			o.f = func(a, _, _ uint64) uint64 { return to(ext(a)) }
			o.kind = opALU
			return
		}
	case "setp":
		o.compare(typ, ext, less, truth)
		return
	}
	if f == nil {
		return
	}
	o.kind = opALU
	if typ == "pred" {
		o.f = func(a, b, c uint64) uint64 { return f(a, b, c) & 1 }
		return
	}
	if w := o.words[0]; w == "shl" || w == "shr" {
		o.f = func(a, b, c uint64) uint64 { return ext(f(ext(a), b, c)) }
		return
	}
	wide := extender(result)
	if o.words[0] == "mad" && o.has("wide") {
		o.f = func(a, b, c uint64) uint64 { return wide(f(ext(a), ext(b), c)) }
		return
	}
	o.f = func(a, b, c uint64) uint64 { return wide(f(ext(a), ext(b), ext(c))) }
}

func (o *op) compare(typ string, ext func(uint64) uint64, less func(a, b uint64) bool, truth func(bool) uint64) {
	if strings.Contains(typ, "f") || len(o.in.Args) != 3 || len(o.words) != 3 {
		return
	}
	test := map[string]func(a, b uint64) bool{
		"eq": func(a, b uint64) bool { return a == b },
		"ne": func(a, b uint64) bool { return a != b },
		"lt": func(a, b uint64) bool { return less(a, b) },
		"le": func(a, b uint64) bool { return !less(b, a) },
		"gt": func(a, b uint64) bool { return less(b, a) },
		"ge": func(a, b uint64) bool { return !less(a, b) },
		"lo": func(a, b uint64) bool { return a < b },
		"hs": func(a, b uint64) bool { return a >= b },
	}[o.words[1]]
	if test != nil {
		o.kind = opALU
		o.f = func(a, b, _ uint64) uint64 { return truth(test(ext(a), ext(b))) }
	}
}
