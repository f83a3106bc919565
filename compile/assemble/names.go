package assemble

import (
	"fmt"
	"strings"

	"dmir/base/escape"
	"dmir/compile/pass"
	"dmir/dialect/ir"
)

// StepName is the name of a step: from the fuse pass, else that of its first
// result.
func StepName(o *ir.Op) string {
	if n := o.Str(pass.NameAttr); n != "" {
		return Identifier(n)
	}
	if len(o.Results) > 0 && o.Results[0].Name != "" {
		return Identifier(o.Results[0].Name)
	}
	return Identifier(strings.TrimPrefix(o.Name, "dm."))
}

// Identifier is a value's name as C allows it.
func Identifier(name string) string { return escape.Identifier(strings.TrimPrefix(name, "%")) }

func (b *builder) unique(name string) string {
	if Reserved(name) {
		name += "_kernel"
	}
	try := name
	for i := 2; b.used[try]; i++ {
		try = fmt.Sprintf("%s_%d", name, i)
	}
	b.used[try] = true
	return try
}

// Reserved reports whether a word cannot name a step or a parameter. The words
// are the same for all back ends, so that steps have the same names in each.
func Reserved(word string) bool { return reserved[word] }

// reserved are the words that cannot name a parameter: C++ keywords that are
// likely value names, and the variables of the kernels.
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
