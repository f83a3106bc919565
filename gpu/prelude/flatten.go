package prelude

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"dmir/base/escape"
	"dmir/gpu/artifact"
)

var (
	includeLine = regexp.MustCompile(`^[ \t]*#[ \t]*include[ \t]+"([^"]+)"`)
	onceLine    = regexp.MustCompile(`^[ \t]*#[ \t]*pragma[ \t]+once\b`)
	condition   = regexp.MustCompile(`^[ \t]*#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b[ \t]*(.*?)[ \t]*(?://.*)?\s*$`)
)

// Flatten is source with each #include "name" replaced by the text of that
// header, once if it has #pragma once, and without code of the host's
// emulation (#ifdef DM_HOST). name is what #line directives call the
// source after a header; "" leaves them out.
func Flatten(source string, headers []artifact.Header, name string) (string, error) {
	f := &flattener{texts: map[string]string{}, taken: map[string]bool{}, name: name}
	for _, h := range headers {
		f.texts[h.Name] = h.Text
	}
	if err := f.add(source, "the source", 0); err != nil {
		return "", err
	}
	return f.out.String(), nil
}

type flattener struct {
	texts map[string]string
	taken map[string]bool
	name  string
	out   strings.Builder
}

// branch is an open conditional of the preprocessor.
type branch struct {
	host bool // it tests DM_HOST, and is evaluated here
	live bool // its current part is taken
	done bool // a part of it was taken, so that no later one is
}

func (f *flattener) add(text, from string, depth int) error {
	if depth > 32 {
		return fmt.Errorf("%s includes itself", from)
	}
	var open []branch
	live := func() bool {
		for _, b := range open {
			if !b.live {
				return false
			}
		}
		return true
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if m := condition.FindStringSubmatch(line); m != nil {
			var keep bool
			if open, keep = conditional(open, m[1], m[2]); keep && live() {
				f.out.WriteString(line)
			}
			continue
		}
		if !live() {
			continue
		}
		if onceLine.MatchString(line) {
			f.taken[from] = true
			continue
		}
		m := includeLine.FindStringSubmatch(line)
		if m == nil {
			f.out.WriteString(line)
			continue
		}
		header := m[1]
		if _, ok := f.texts[header]; !ok {
			header = path.Join(path.Dir(from), header)
		}
		body, ok := f.texts[header]
		if !ok {
			return fmt.Errorf("%s, line %d: there is no header %q", from, n, m[1])
		}
		if f.taken[header] {
			continue
		}
		if err := f.add(body, header, depth+1); err != nil {
			return err
		}
		if depth == 0 && f.name != "" {
			fmt.Fprintf(&f.out, "#line %d %s\n", n+1, escape.Line(f.name))
		}
	}
	if so := f.out.String(); so != "" && !strings.HasSuffix(so, "\n") {
		f.out.WriteByte('\n')
	}
	return nil
}

// conditional processes one directive; keep is whether it stays in the text.
func conditional(open []branch, word, what string) (_ []branch, keep bool) {
	switch word {
	case "ifdef", "ifndef", "if":
		b := branch{live: true}
		switch what = strings.ReplaceAll(what, " ", ""); {
		case word == "ifdef" && what == "DM_HOST", word == "if" && what == "defined(DM_HOST)":
			b = branch{host: true}
		case word == "ifndef" && what == "DM_HOST", word == "if" && what == "!defined(DM_HOST)":
			b = branch{host: true, live: true, done: true}
		}
		return append(open, b), !b.host
	}
	if len(open) == 0 {
		return open, true // the compiler reports it
	}
	b := &open[len(open)-1]
	if word == "endif" {
		return open[:len(open)-1], !b.host
	}
	if b.host { // #else, and #elif, whose condition is assumed to hold
		b.live = !b.done
		b.done = true
	}
	return open, !b.host
}
