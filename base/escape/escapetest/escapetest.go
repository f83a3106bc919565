// Package escapetest provides names that try to escape from their context. Tests pass
// them through everything that writes text, and search the output for Mark.
package escapetest

import "strings"

// Mark is the word that appears where a name has escaped: as C++ code in a generated
// text, as a separate line in a terminal.
const Mark = "DMIR_ESCAPED"

// Names are hostile names of functions, values, files and attributes. What they
// would add to C++ does not compile.
var Names = []string{
	"f\n#error " + Mark + "\n//",
	"f\r#error " + Mark + "\r//",
	"f\r\n#include </etc/" + Mark + ">\r\n//",
	"f\u2028#error " + Mark + "\u2029",
	"f\u0085#error " + Mark,
	"f\v#error " + Mark + "\f",
	`f\`,
	"f??/",
	"f\\\n#error " + Mark,
	"f*/ " + Mark + " /*",
	`f"` + "\n#error " + Mark + "\n//",
	`f" ` + Mark + ` "`,
	"f'); " + Mark + "('",
	"$(touch " + Mark + ") `touch " + Mark + "` ; touch " + Mark + " #",
	"--" + Mark,
	"-o" + Mark,
	"</script><script>" + Mark + "()</script><!--",
	"<img src=x onerror=" + Mark + "()>",
	"]]>&lt;" + Mark + "&#10;",
	"\x1b]0;" + Mark + "\a\x1b[2J\x1b[31m",
	"\u009b2J\u009d0;" + Mark + "\u009c",
	"\x7f\b\b\b" + Mark,
	"\u202e" + Mark + "\u2066",
	"::error file=" + Mark + "::x\n::warning::" + Mark,
	"%0A::error::" + Mark + "%25",
	"a,b:c=" + Mark,
	"a|b`" + Mark + "`[x](command:" + Mark + ")",
	"%:include </etc/" + Mark + ">",
	"_Pragma(\"" + Mark + "\")",
	"___asm___",
	"__asm__",
	"NULL",
	"errno",
	"DM_UNROLL",
	"../../" + Mark,
	"a\x00b",
	"\xff\xfe" + Mark,
	"@" + Mark + "@",
	strings.Repeat("a", 300),
}
