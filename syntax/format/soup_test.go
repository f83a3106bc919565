package format_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestSoup formats texts in which the pieces of MLIR stand in any order, apart or
// not: what an editor may hold. Set DMIR_ROUNDS for more than a few.
func TestSoup(t *testing.T) {
	rounds := 3000
	if n, err := strconv.Atoi(os.Getenv("DMIR_ROUNDS")); err == nil {
		rounds = n
	}
	for seed := range rounds {
		text := soup(rand.New(rand.NewPCG(uint64(seed), 6)))
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { hold(t, text) }) {
			t.Fatalf("the text was %q", text)
		}
	}
}

// soup is one to four stretches of a pattern with pieces lost, put in or
// replaced, and the space between its pieces chosen afresh.
func soup(r *rand.Rand) string {
	pieces := strings.Fields(`{ } ( ) < > [ ] { } ( ) < > : :: = == >= <= -> - + * ? / , ; | . ... x 4x 8xf32 1e5 1e +5 -1.0e-3 0x1F
		%x %x#1 %1 %x-1 %x- ^bb0 ^1 @f @"g" "a.b" "s" " # ! #a !t #3o4 #a.b !a.b #a-b #a< !t< #a.b<x<y>> !t<"s"> #a<> #a{ #-} {-# {- é
		a.b x.y dm.exp dm.einsum dm.kernel dm.yield func.func func.call call return module loc loc( array array< dense dense< tensor<4xf32>
		tensor<?x8x i32 f32 private attributes else do as in true unit k foo foo( foo< foo[ "" "a\"b" // //> //" // /// // ----- $ $a _a`)
	pieces = append(pieces, "// -----", "// c", "// \"", `"a.b"(`, `({`, `})`, `<{`, `}>`)
	patterns := []string{
		`%x = "a.b" ( %x , %y#1 ) [ ^bb0 ] < { a = 1 : i32 } > ( { ^bb0 ( %a : i32 ) : "c.d" ( ) : ( ) -> ( ) } ) { k = #a<b> } : ( i32 , !t ) -> i32 loc ( "f" : 1 : 2 )`,
		`%x:2 = dm.einsum "ab,bc->ac" , %x , %y , dims = [ 1 , 0 ] , k = foo<a> { a = array< i64 : 1 , 2 > } : ( tensor<4xf32> , f32 ) -> f32`,
		`func.func private @f ( %a : tensor < 4 x f32 , #a > { x = 1 } , %b : !t loc ( #l ) ) -> ( f32 { y } , i32 ) attributes { k } { return %a : f32 }`,
		`module @m attributes { a = dense < [ 1 , -2.0e-1 ] > : tensor<2xf32> } { call @f ( %x ) : ( i32 ) -> ( ) }`,
		`x.y %a , %b { z.w %c < %d : i32 } else { a.b @f :: @g } : i32 -> !a.b<x , y> loc ( unknown )`,
		`dm.kernel %a -> f32 { %k = dm.exp %a : f32 dm.yield %k : f32 } x.for %i = %a to %b iter_args ( %j = %k ) -> ( i32 ) { x.yield %i : i32 }`,
		`#a = affine_map < ( d0 ) [ s0 ] -> ( d0 + s0 ) > !t = tuple < i32 , !t > {-# a : { b : "0x00" } , c #-} // -----`,
	}
	var b strings.Builder
	space := func() {
		switch n := r.IntN(40); {
		case n < 14:
		case n < 26:
			b.WriteByte(' ')
		case n < 31:
			b.WriteString("\n")
		case n < 33:
			b.WriteString(strings.Repeat(" ", 1+r.IntN(5)))
		case n < 34:
			b.WriteString("\t")
		case n < 35:
			b.WriteString("\n\n\n  ")
		case n < 36:
			b.WriteString("\n  ")
		case n < 37:
			b.WriteString(" // c\n")
		case n < 38:
			b.WriteString("\r")
		case n < 39:
			b.WriteString("\r\n")
		default:
			b.WriteString("\n// -----\n")
		}
	}
	chance := 1 + r.IntN(30) // of a change, in a hundred pieces
	spaced := r.IntN(3) > 0  // pieces stand apart, mostly by one blank
	for range 1 + r.IntN(4) {
		words := strings.Fields(patterns[r.IntN(len(patterns))])
		from := 0
		if r.IntN(4) == 0 {
			from = r.IntN(len(words))
		}
		for _, w := range words[from:] {
			switch n := r.IntN(100); {
			case n >= chance:
				b.WriteString(w)
			case n%4 == 0: // lost
			case n%4 == 1:
				b.WriteString(w)
				space()
				b.WriteString(pieces[r.IntN(len(pieces))])
			default:
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
			if spaced && r.IntN(100) >= chance {
				b.WriteByte(' ')
			} else {
				space()
			}
		}
		b.WriteByte("\n \n\n"[r.IntN(4)])
	}
	return b.String()
}
