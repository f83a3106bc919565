package nvrtc

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"dmir/gpu/artifact"
)

// ArchError reports that the compiler does not support the architecture or one of
// the options.
type ArchError struct {
	Arch     string
	Compiler string
	Reason   string
}

// Error is one line.
func (e *ArchError) Error() string {
	return fmt.Sprintf("%s cannot compile for %s: %s", e.Compiler, e.Arch, e.Reason)
}

// Failure reports that no code is made for the architecture.
func (e *ArchError) Failure() artifact.Failure {
	return artifact.Failure{Reason: artifact.UnknownArch, Arch: e.Arch, Help: "dmir doctor lists the architectures that the compiler supports"}
}

// CompileError reports that a source does not compile.
type CompileError struct {
	Arch     string
	Compiler string
	Messages []Message // at least the errors; warnings too
	Log      string
}

// Message is a message of the compiler about a place.
type Message struct {
	Severity string // "error", "warning" or "note"
	Text     string
	// File and Line (1-based) are as #line directives have it, so of the .dmir
	// file for a kernel that was generated from one.
	File string
	Line int
	// Generated is the line (1-based) of the source that was compiled, where the
	// place is in it; 0 where it is in a header, or unknown.
	Generated int
	// Detail is what follows the first line: the source line and the caret.
	Detail string
}

// Error is the first error, with its place.
func (e *CompileError) Error() string {
	first, ok := e.First()
	if !ok {
		return fmt.Sprintf("%s does not compile the kernels for %s: %s", e.Compiler, e.Arch, firstLine(e.Log))
	}
	n := 0
	for _, m := range e.Messages {
		if m.Severity == "error" {
			n++
		}
	}
	more := ""
	if n > 1 {
		more = fmt.Sprintf(" (and %d more)", n-1)
	}
	at := fmt.Sprintf("%s:%d: ", first.File, first.Line)
	if first.Generated > 0 {
		at += fmt.Sprintf("line %d of the CUDA text: ", first.Generated)
	}
	return fmt.Sprintf("%s%s%s [%s for %s]", at, first.Text, more, e.Compiler, e.Arch)
}

// Failure reports that the compiler rejects the text, and the place of the first error.
func (e *CompileError) Failure() artifact.Failure {
	f := artifact.Failure{Reason: artifact.Rejected, Compiler: "the CUDA compiler"}
	if m, ok := e.First(); ok {
		f.File, f.Line = m.File, m.Line
	}
	return f
}

// First is the first error, if the compiler gave one with a place.
func (e *CompileError) First() (Message, bool) {
	for _, m := range e.Messages {
		if m.Severity == "error" {
			return m, true
		}
	}
	return Message{}, false
}

// place sets the line in the generated source of each message: it compiles again
// without the #line directives, which gives the same messages in the same order.
func (c *Compiler) place(ctx context.Context, failed *CompileError, source string, headers []Header, arch string, opts Options) {
	if !lineDirective.MatchString(source) {
		for i, m := range failed.Messages {
			if m.File == opts.Name {
				failed.Messages[i].Generated = m.Line
			}
		}
		return
	}
	_, err := c.compile(ctx, lineDirective.ReplaceAllString(source, ""), headers, arch, opts)
	plain, ok := err.(*CompileError)
	if !ok || len(plain.Messages) != len(failed.Messages) {
		return
	}
	for i, m := range plain.Messages {
		if m.Text == failed.Messages[i].Text && m.File == opts.Name {
			failed.Messages[i].Generated = m.Line
		}
	}
}

var lineDirective = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*(?:line[ \t]+)?[0-9]+.*$`)

// The place of a message as NVRTC and nvcc write it: file(12): error: text. Also
// with a number, "error #20: …", and "catastrophic error".
var messageLine = regexp.MustCompile(`^(.*?)\((\d+)\): (?:catastrophic )?(error|warning|note|remark)(?: #[\w-]+)?: (.*)$`)

// The host's preprocessor, under nvcc, writes file:12:3: fatal error: text.
var hostMessageLine = regexp.MustCompile(`^(.*?):(\d+):\d+: (?:fatal )?(error|warning|note): (.*)$`)

// parseMessages reads the compiler's log.
func parseMessages(log string) []Message {
	var out []Message
	var last *Message
	for line := range strings.Lines(log) {
		line = strings.TrimRight(line, "\r\n")
		f := messageLine.FindStringSubmatch(line)
		if f == nil {
			f = hostMessageLine.FindStringSubmatch(line)
		}
		if f != nil {
			n, _ := strconv.Atoi(f[2])
			out = append(out, Message{Severity: f[3], Text: f[4], File: f[1], Line: n})
			last = &out[len(out)-1]
			continue
		}
		if last != nil && strings.HasPrefix(line, " ") && strings.TrimSpace(line) != "" {
			last.Detail += line + "\n"
			continue
		}
		last = nil
	}
	return out
}

func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return "it gives no reason"
}
