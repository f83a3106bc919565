package attribution

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// TraceVersion is that of the format of traces.
const TraceVersion = 1

// Folder is where the traces of a workspace are.
const Folder = ".dmir/traces"

// Trace describes a program that was traced from Python: the file NAME.json beside it.
type Trace struct {
	Version   int             `json:"dmir_trace"`
	Name      string          `json:"name"`
	Program   string          `json:"program"` // a file beside this one
	Framework string          `json:"framework,omitempty"`
	Command   []string        `json:"command,omitempty"` // that traces again; none where that cannot be
	Directory string          `json:"directory,omitempty"`
	Created   string          `json:"created,omitempty"`
	Files     []TracedFile    `json:"files,omitempty"`
	Train     json.RawMessage `json:"train,omitempty"` // what `dmir import --train` makes of it

	At string `json:"-"` // the path of the description
}

// Trained reports whether t is of a model and says how it is trained.
func (t *Trace) Trained() bool { return len(t.Train) > 0 && string(t.Train) != "null" }

// TracedFile is a file of the person's own as it was traced.
type TracedFile struct {
	Path   string `json:"path"` // relative to the workspace
	Name   string `json:"name"` // as locations have it
	SHA256 string `json:"sha256"`
	Text   string `json:"text"`
}

var traceName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,200}$`)

// MaxDescription is the largest description that is read, in bytes: it holds the text of the files that were traced.
const MaxDescription = 64 << 20

// FormatError is that a description is not in JSON, or that what it holds is of another kind.
type FormatError struct {
	Offset int // of the byte behind what it is about
	What   string
}

func (e *FormatError) Error() string { return "it is no description of a trace: " + e.What }

// ReadTrace reads a description; path is where it is. An error is a *FormatError where it has a place in data.
func ReadTrace(path string, data []byte) (*Trace, error) {
	t := &Trace{At: path}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	err := json.Unmarshal(data, t)
	switch {
	case errors.As(err, &syntax):
		return nil, &FormatError{int(syntax.Offset), syntax.Error()}
	case errors.As(err, &kind):
		return nil, &FormatError{int(kind.Offset), fmt.Sprintf("its %q is of the kind %s", kind.Field, kind.Value)}
	case err != nil:
		return nil, fmt.Errorf("it is no description of a trace: %w", err)
	}
	switch {
	case t.Version == 0:
		return nil, fmt.Errorf(`it is no description of a trace: it has no "dmir_trace"`)
	case !traceName.MatchString(t.Name):
		return nil, fmt.Errorf("its name %q is not of letters, digits, and . _ -", t.Name)
	case t.Version > TraceVersion:
		return nil, fmt.Errorf("it is of version %d of traces; this dmir reads version %d: update dmir", t.Version, TraceVersion)
	case t.Program == "" || t.Program != filepath.Base(t.Program) || strings.HasPrefix(t.Program, ".") || strings.ContainsAny(t.Program, `/\`):
		return nil, fmt.Errorf("its program %q is no name of a file beside it", t.Program)
	}
	for _, f := range t.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
			return nil, fmt.Errorf("its file %q is not in the workspace", f.Path)
		}
	}
	return t, nil
}

// ProgramPath is where its program is.
func (t *Trace) ProgramPath() string { return filepath.Join(filepath.Dir(t.At), t.Program) }

// Root is the workspace of a trace.
func (t *Trace) Root() string { return RootOf(t.At) }

// RootOf is the workspace of a file in its Folder of traces, otherwise the folder of the file.
func RootOf(path string) string {
	dir := filepath.Dir(path)
	if up, ok := strings.CutSuffix(filepath.ToSlash(dir), "/"+Folder); ok {
		return filepath.FromSlash(up)
	}
	return dir
}

func (t *Trace) file(name string) *TracedFile {
	if t == nil {
		return nil
	}
	for i := range t.Files {
		if t.Files[i].Name == name {
			return &t.Files[i]
		}
	}
	return nil
}

// text is that of the file that locations call name, as it was traced.
func (t *Trace) text(name string) (string, bool) {
	f := t.file(name)
	if f == nil {
		return "", false
	}
	return f.Text, true
}

// path is where the file that locations call name is in the workspace.
func (t *Trace) path(name string) string {
	if f := t.file(name); f != nil {
		return f.Path
	}
	return ""
}

// Is reports whether text is that of the file when it was traced.
func (f *TracedFile) Is(text string) bool {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:]) == f.SHA256
}
