package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/term"

	"dmir/analysis/program"
	"dmir/base/atomicfile"
	"dmir/base/escape"
	"dmir/base/regular"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/source"
)

// maxBytes is the largest program text that is read: beyond 1,000,000 ops, whose analysis takes 2 GB,
// and small enough that a mistaken argument does not fill the memory.
const maxBytes = 256_000_000

// maxModel is the largest model that is read, in ONNX or, as text with its constants, in
// StableHLO: what the former allows.
const maxModel = 2 << 30

// isModel reports whether a file is a model in ONNX, by its name or by its first byte, with
// which no text begins.
func isModel(name string, data []byte) bool {
	return filepath.Ext(name) == ".onnx" || bytes.HasPrefix(data, []byte{8})
}

// stdin is what the standard input is called in messages.
const stdin = "<stdin>"

// bytes is the file at path, of the description of a trace its program, and its name in messages; "-" is stdin.
func (a *app) bytes(path string) (data []byte, name string, err error) {
	t, err := a.trace(path)
	switch {
	case err != nil:
		return nil, path, err
	case t != nil:
		path = t.ProgramPath()
	}
	name, in := path, a.stdin
	limit := int64(maxBytes)
	if path == "-" {
		name = stdin
	} else {
		f, err := regular.OpenNamed(path)
		if err != nil {
			return nil, name, cannotRead(path, err)
		}
		defer f.Close()
		in = f
		if isModel(name, nil) || filepath.Ext(name) == ".mlir" {
			limit = maxModel
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > limit {
			return nil, name, tooLarge(name, limit)
		}
		if isModel(name, nil) {
			if data := regular.Mapped(f, limit); data != nil {
				return data, name, nil
			}
		}
	}
	data, err = readAll(a.ctx, in, limit+1)
	switch {
	case a.ctx.Err() != nil:
		return nil, name, a.ctx.Err()
	case err != nil:
		return nil, name, cannotRead(name, err)
	case int64(len(data)) > limit:
		return nil, name, tooLarge(name, limit)
	}
	return data, name, nil
}

// read is the text at path; "-" is stdin.
func (a *app) read(path string) (*source.File, error) {
	data, name, err := a.bytes(path)
	if err != nil {
		return nil, err
	}
	return text(name, data)
}

// text is a file that holds a program.
func text(name string, data []byte) (*source.File, error) {
	if kind, help := otherKind(name, data); kind != "" {
		return nil, &failure{"DM619", name, "is " + kind + ", not the text of a program", help}
	}
	return source.New(name, unsafe.String(unsafe.SliceData(data), len(data))), nil // not copied: large, and nothing else keeps data
}

// bytecode begins MLIR's binary form.
const bytecode = "ML\xefR"

// otherKind recognizes files that are not programs, by their first bytes or, for
// texts in other languages, by their names. It returns what the file is and what to do
// with it.
func otherKind(name string, text []byte) (kind, help string) {
	has := func(prefix string) bool { return bytes.HasPrefix(text, []byte(prefix)) }
	switch ext := filepath.Ext(name); {
	case has(artifact.Magic):
		return "a compiled program", "name the .dmir file that it was compiled from; dmir run takes this one"
	case has("\x93NUMPY"), has("PK\x03\x04"):
		return "an array", "name a .dmir file; dmir run takes arrays with --input NAME=FILE"
	case isModel(name, text):
		return "a model in ONNX", "dmir import makes a program of it; cost, run, opt, compile and report read it as it is"
	case has(bytecode):
		return "MLIR bytecode", `its text is printed by: python -c "from jaxlib.mlir import ir; from jaxlib.mlir.dialects import stablehlo; ` +
			`print(stablehlo.deserialize_portable_artifact(ir.Context(), open('FILE', 'rb').read()))"`
	case bytes.Contains(text, []byte(bytecode)):
		return "a program that jax.export has serialized", `its text is printed by: python -c "import jax.export; ` +
			`print(jax.export.deserialize(bytearray(open('FILE', 'rb').read())).mlir_module())"`
	case has("\x7fELF"):
		return "machine code", "name the .dmir file that it was compiled from"
	case slices.Contains([]string{".cu", ".cuh", ".h", ".cpp", ".cc"}, ext):
		return "C++", "name the .dmir file that it was made from"
	case ext == ".py":
		return "a program in Python", "python -m dmir trace FILE.py:NAME writes its trace, whose .json every command takes; dmir.cost reports from within the program"
	case ext == ".ipynb":
		return "a notebook", "%load_ext dmir and %%dmir in a cell report its cost"
	case ext == ".json":
		return "JSON", "name the .json that python -m dmir trace has written below .dmir/traces, or the .dmir file"
	case ext == ".ptx", ext == ".sass":
		return "assembly", "name the .dmir file that it was made from"
	}
	return "", ""
}

// isCompiled reports whether a file is a compiled program, whatever its name.
func isCompiled(path string) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(artifact.Magic))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == artifact.Magic
}

// readAll reads to the end of in, at most limit bytes. A read of a terminal or a pipe
// cannot be cancelled, so it is abandoned when ctx ends.
func readAll(ctx context.Context, in io.Reader, limit int64) ([]byte, error) {
	return await(ctx, func() ([]byte, error) {
		var b bytes.Buffer
		if f, ok := in.(*os.File); ok {
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				b.Grow(int(min(info.Size(), limit)) + bytes.MinRead) // the buffer does not grow then
			}
		}
		_, err := b.ReadFrom(io.LimitReader(in, limit))
		return b.Bytes(), err
	})
}

// await returns the results of f, or the error of ctx as soon as that ends. Then f,
// which must have no side effects, is abandoned: the process is about to end.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		val T
		err error
	}
	done := make(chan result, 1)
	go func() {
		val, err := f()
		done <- result{val, err}
	}()
	select {
	case r := <-done:
		return r.val, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// analyse is the program of a text.
func (a *app) analyse(src *source.File, opts program.Options) (*program.Program, error) {
	return await(a.ctx, func() (*program.Program, error) { return program.Load(src, opts), nil })
}

// expand replaces the folders among paths by the .dmir files in them.
func expand(paths []string) ([]string, error) {
	var files []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if p == "-" || err != nil || !info.IsDir() {
			files = append(files, p) // reading it reports the error
			continue
		}
		found := len(files)
		err = filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return cannotRead(path, err)
			}
			if d.IsDir() && path != p && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			if d.Type().IsRegular() && strings.HasSuffix(path, ".dmir") {
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(files) == found {
			return nil, &failure{"DM611", p, "holds no .dmir file", "name the files themselves"}
		}
	}
	return files, nil
}

// write replaces the file at path by text, atomically and with its mode.
func write(path, text string) error {
	err := atomicfile.WriteFile(path, 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
	if err != nil {
		return cannotWrite(path, err)
	}
	return nil
}

// diff prints the unified diff from before to after of the file at path. Its lines are those
// of the file, so that it can be applied; hidden characters in them are named on stderr.
func (a *app) diff(path, before, after string) error {
	text := format.Diff(escape.Terminal(path), before, after)
	if _, err := io.WriteString(a.stdout, text); err != nil {
		return err
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if i := strings.IndexFunc(strings.TrimRight(line, "\r\n"), func(r rune) bool { return r != '\t' && escape.Control(r) }); i >= 0 {
			r, _ := utf8.DecodeRuneInString(line[i:])
			escape.Fprintf(a.stderr, "dmir: %s: line %d of the diff has the hidden character %U\n", path, n, r)
			break
		}
	}
	return nil
}

// isStdout reports whether path is the standard output, to which nothing else is
// printed then.
func (a *app) isStdout(path string) bool {
	f, ok := a.stdout.w.(*os.File)
	if !ok || !atomicfile.IsStream(path) {
		return false
	}
	x, err1 := f.Stat()
	y, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// styleOf uses colours on a terminal that supports them.
func styleOf(w io.Writer) diag.Style {
	if o, ok := w.(*output); ok {
		w = o.w
	}
	f, ok := w.(*os.File)
	return diag.Style{Color: ok && isTerminal(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// hasErrors reports whether one of ds is an error.
func hasErrors(ds []diag.Diagnostic) bool {
	return slices.ContainsFunc(ds, func(d diag.Diagnostic) bool { return d.Severity == diag.Error })
}

// distinct keeps one diagnostic about a type that is wrong in many places; an
// editor underlines each of them.
func distinct(src *source.File, ds []diag.Diagnostic) []diag.Diagnostic {
	type typeError struct{ code, message, text string }
	var out []diag.Diagnostic
	first, more := map[typeError]int{}, map[int]int{} // by place in out
	for _, d := range ds {
		isType := slices.ContainsFunc(types.Codes, func(c diag.Code) bool { return c.Code == d.Code })
		key := typeError{d.Code, d.Message, src.Slice(d.Span)}
		if i, seen := first[key]; seen && isType {
			more[i]++
			continue
		}
		first[key] = len(out)
		out = append(out, d)
	}
	for i, n := range more {
		out[i].Notes = append(slices.Clone(out[i].Notes), "the same in "+count(n, "more place"))
	}
	return out
}

// warn writes warnings about a program, at their places in its text where they have one.
func (a *app) warn(src *source.File, ds []diag.Diagnostic) {
	for _, d := range ds {
		if d.Span.Len() == 0 {
			diag.TextWithoutPlace(a.stderr, src.Path, d, styleOf(a.stderr))
			continue
		}
		diag.Text(a.stderr, src, d, styleOf(a.stderr))
	}
}

// JSONVersion is that of all JSON that commands print; docs/VERSIONS.md says when it changes.
const JSONVersion = 1

// writeJSON writes v, a struct or a map, as the indented JSON of --output-format json, with its version first.
func writeJSON(w io.Writer, v any) error {
	members, err := json.Marshal(v)
	if err != nil {
		return err
	}
	head := fmt.Sprintf(`{"dmir_json":%d`, JSONVersion)
	if string(members) != "{}" {
		head += ","
	}
	var out bytes.Buffer
	if err := json.Indent(&out, append([]byte(head), members[1:]...), "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err = out.WriteTo(w)
	return err
}

// printErrors writes the errors among ds.
func printErrors(w io.Writer, src *source.File, ds []diag.Diagnostic) {
	for _, d := range distinct(src, ds) {
		if d.Severity == diag.Error {
			diag.Text(w, src, d, styleOf(w))
		}
	}
}
