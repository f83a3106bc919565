// Package cuda writes kernels as CUDA C++: the text of each form of
// compile/kernel, and of a whole scheduled function the program that a device
// runs (gpu/artifact). The text uses the prelude's names (gpu/prelude) and is
// meant to be read: the value names of the program, one statement for each
// scalar op, lines that point back to the program.
package cuda

import (
	"regexp"
	"strings"

	"dmir/analysis/machine"
	"dmir/internal/escape"
)

// Target is what kernels are written for.
type Target struct {
	Arch    string // "sm_80", "sm_90a", …
	Machine *machine.Machine
	Tiles   *Choices // of contractions, where they were measured; nil: the model decides
	Rank    int      // take the candidate of this rank, 1 the best, to measure it; 0: none in particular
}

// generated are the names that emitters make.
var generated = regexp.MustCompile(`^(t|f|c|v|j|k|out|sum|total|sums_|scratch_.*)[0-9]*$`)

// identifier is a value's name as C++ allows it.
func identifier(name string) string { return escape.Identifier(strings.TrimPrefix(name, "%")) }

// macro matches the names that headers may define, or that are the
// implementation's: in capitals, or with an underscore in front.
var macro = regexp.MustCompile(`^(_.*|DM_.*|[A-Z][A-Z0-9_]+)$`)

// reserved are the words that no parameter may be called: those of C++ that
// values are likely to have, and the variables of the kernels.
var reserved = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`and and_eq asm auto bool break case catch char class const constexpr continue default delete do double else enum
		explicit export extern false float for friend goto if inline int long mutable namespace new not not_eq operator or or_eq private
		protected public register return short signed sizeof static struct switch template this throw true try typedef typename union
		unsigned using virtual void volatile while xor xor_eq dm main row col lane i j s p part lane_row partial first
		z m n k r a b f v to at acc arena full value from sum source outer load has
		alignas alignof char8_t char16_t char32_t compl concept consteval constinit const_cast co_await co_return co_yield decltype
		dynamic_cast noexcept nullptr reinterpret_cast requires static_assert static_cast thread_local typeid typeof typename wchar_t
		bitand bitor errno assert stdin stdout stderr offsetof va_list va_arg va_start va_end va_copy unix linux i386 std`) {
		m[w] = true
	}
	return m
}()
