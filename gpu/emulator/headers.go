package emulator

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"dmir/gpu/artifact"
	"dmir/gpu/prelude"
)

var includes = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]+"([^"]+)"`)

// runtimeNames are the parts of the prelude that the emulation consists of: it and
// the programs that it runs must use the same version.
var runtimeNames = sync.OnceValue(func() map[string]bool {
	texts := map[string]string{}
	for _, f := range prelude.Files() {
		texts[f.Name] = f.Text
	}
	reached := map[string]bool{}
	var reach func(name string)
	reach = func(name string) {
		if reached[name] {
			return
		}
		reached[name] = true
		for _, m := range includes.FindAllStringSubmatch(texts[name], -1) {
			reach(m[1])
		}
	}
	reach(prelude.Main)
	reach("emu_main.cuh")
	return reached
})

// headers are the program's own versions of the parts that its code is written
// for, such as the main loops of contractions: a program from a file may be older
// than the prelude that is built in.
func headers(p *artifact.Program) (map[string]string, error) {
	out := map[string]string{}
	for _, h := range p.Headers {
		if !headerName.MatchString(h.Name) {
			return nil, fmt.Errorf("%q is not a valid name for a header", h.Name)
		}
		if !runtimeNames()[h.Name] && !strings.HasPrefix(h.Name, "emu") {
			out[h.Name] = h.Text
		}
	}
	return out, nil
}

// headerName is flat: the text is written to a file of this name.
var headerName = regexp.MustCompile(`^[A-Za-z0-9_]+\.cuh$`)
