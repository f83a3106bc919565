package attribution

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"dmir/base/escape"
	"dmir/dialect/loc"
)

// Sources are the files that locations name: which of them are the person's own, and their text. They are safe for concurrent
// use once Look has returned.
type Sources struct {
	Root   string   // the workspace, an absolute path; files outside are never opened
	Unfold []string // libraries whose files count as the person's own: a part of their path, such as "flax"
	Trace  *Trace   // may be nil

	mu    sync.Mutex
	files map[string]*File
	place map[loc.Loc]Place
	loose bool // there is no file of the workspace: any that is no library's counts
}

// File is a file that locations name.
type File struct {
	Name  string // as locations have it
	Path  string // as it is shown: below the workspace, relative to it, with slashes
	Own   bool
	Lines []string // nil where the text is not known

	outlined sync.Once
	scope    []Scope
}

// Place is where in a program a location is, by the frame that counts.
type Place struct {
	File  *File // nil where nothing is known
	Frame loc.Frame
	Trace loc.Trace
}

// maxText bounds a source file that is read.
const maxText = 4 << 20

var library = regexp.MustCompile(`(^|[/\\])(site-packages|dist-packages|lib(64)?[/\\]python\d[\d.]*)[/\\]|^<(?:frozen|string|eval|__array_function__)`)

// File is the file that locations call name.
func (s *Sources) File(name string) *File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file(name)
}

func (s *Sources) file(name string) *File {
	if f := s.files[name]; f != nil {
		return f
	}
	f := &File{Name: name, Path: name}
	if s.files == nil {
		s.files = map[string]*File{}
	}
	s.files[name] = f
	rel, inside := s.relative(name)
	if inside {
		f.Path = filepath.ToSlash(rel)
	}
	if text, known := s.Trace.text(name); known {
		f.Own, f.Lines = true, Lines(text)
		if path := s.Trace.path(name); path != "" {
			f.Path = path
		}
		return f
	}
	f.Own = !library.MatchString(name) && inside
	for _, u := range s.Unfold {
		f.Own = f.Own || u != "" && strings.Contains(filepath.ToSlash(name), u)
	}
	if inside && f.Own {
		f.Lines = s.read(rel)
	}
	return f
}

// relative is name below the workspace.
func (s *Sources) relative(name string) (string, bool) {
	if s.Root == "" {
		return "", false
	}
	rel := name
	if filepath.IsAbs(name) {
		var err error
		if rel, err = filepath.Rel(s.Root, name); err != nil {
			return "", false
		}
	}
	return rel, filepath.IsLocal(rel)
}

// read is the text of a file of the workspace, nil where it cannot be read; links do not lead out of it.
func (s *Sources) read(rel string) []string {
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return nil
	}
	defer root.Close()
	f, err := root.Open(rel)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxText {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(f, maxText))
	if err != nil {
		return nil
	}
	return Lines(string(text))
}

// Lines are the lines of a text, without their ends.
func Lines(text string) []string {
	return strings.Split(strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\r\n", "\n"), "\n")
}

// Text is line n of f, counted from 1, "" where it is not known.
func (f *File) Text(n int) string {
	if f == nil || n < 1 || n > len(f.Lines) {
		return ""
	}
	return f.Lines[n-1]
}

// Look decides which files are the person's own before places are asked for: where no frame of the function is in the
// workspace, all files count that are no library's.
func (s *Sources) Look(fs ...*Function) {
	s.loose = true
	seen := map[loc.Loc]bool{}
	for _, f := range fs {
		for _, x := range f.Shares {
			if x.Loc == nil || seen[x.Loc] {
				continue
			}
			seen[x.Loc] = true
			for _, frame := range loc.TraceOf(x.Loc).Frames {
				if s.File(frame.File).Own {
					s.loose = false
					return
				}
			}
		}
	}
}

// Place is the place of l.
func (s *Sources) Place(l loc.Loc) Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, known := s.place[l]; known {
		return p
	}
	p := s.find(l)
	if s.place == nil {
		s.place = map[loc.Loc]Place{}
	}
	s.place[l] = p
	return p
}

func (s *Sources) find(l loc.Loc) Place {
	p := Place{Trace: loc.TraceOf(l)}
	for _, counts := range []func(*File) bool{
		func(f *File) bool { return f.Own },
		func(f *File) bool { return s.loose && !library.MatchString(f.Name) },
		func(*File) bool { return true },
	} {
		for _, frame := range p.Trace.Frames {
			if f := s.file(frame.File); counts(f) {
				p.File, p.Frame = f, frame
				return p
			}
		}
	}
	return p
}

// Function is the name of the function around a place, with those of the classes and functions around it where the text is known.
func (p Place) Function() string {
	if p.File == nil {
		return ""
	}
	if in := p.File.Around(p.Frame.Line); in != nil {
		return in.Name
	}
	return p.Frame.Function
}

// OriginText is Origin in a few words, "model.py:14 in loss", fit for a terminal; "" where l has none.
func OriginText(l loc.Loc) string {
	from, known := Origin(l)
	if !known {
		return ""
	}
	text := fmt.Sprintf("%s:%d", filepath.Base(from.File), from.Line)
	if from.Function != "" {
		text += " in " + from.Function
	}
	return escape.Terminal(text)
}

// Origin is the frame of l that a person looks for first: the innermost in no library, else the innermost. ok is false where l has none.
func Origin(l loc.Loc) (frame loc.Frame, ok bool) {
	costs := Costs(l)
	frames := loc.TraceOf(costs[0]).Frames
	for _, f := range frames {
		if !library.MatchString(f.File) {
			return f, true
		}
	}
	if len(frames) == 0 {
		return loc.Frame{}, false
	}
	return frames[0], true
}
