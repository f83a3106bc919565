package native

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"dmir/base/atomicfile"
	"dmir/base/local"
	"dmir/base/tally"
	"dmir/gpu/artifact"
)

// The versions of clang that are looked for by name. Older ones do not read the IR, or
// generate wrong code from it.
const (
	oldest = 14
	newest = 22
)

// Clang is a compiler.
type Clang struct {
	Path    string
	Version string // "clang 14.0.6"
	banner  string // all that it prints about itself
}

// NotFound reports that there is no clang, or none that is new enough.
type NotFound struct{ Why string }

func (e *NotFound) Error() string { return e.Why + "; " + Get }

// Failure reports that a tool is missing.
func (e *NotFound) Failure() artifact.Failure {
	return artifact.Failure{Reason: artifact.MissingTool, Help: Get}
}

// Get is what clang is for, and how to get it.
const Get = "clang 14 or newer compiles programs to fast code for this machine's CPU: install it (Debian and Ubuntu: apt-get install clang; Fedora: dnf install clang; macOS: xcode-select --install), or name one in $DMIR_CLANG"

// release is in what clang --version prints: "Debian clang version 14.0.6".
var release = regexp.MustCompile(`clang version ((\d+)(?:\.\d+)*)`)

// Find finds clang: the one that $DMIR_CLANG names, else the first on PATH that is new
// enough. The error is a *NotFound where there is none.
func Find(ctx context.Context) (*Clang, error) {
	if runtime.GOOS == "windows" {
		return nil, errWindows
	}
	if name := os.Getenv("DMIR_CLANG"); name != "" {
		c, err := probe(ctx, name)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			return nil, &NotFound{"$DMIR_CLANG names " + name + ", which is not a program"}
		}
		return c, err
	}
	names := []string{"clang"}
	for v := newest; v >= oldest; v-- {
		names = append(names, fmt.Sprintf("clang-%d", v))
	}
	var old error
	for _, name := range names {
		c, err := probe(ctx, name)
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		if !errors.Is(err, exec.ErrNotFound) && old == nil {
			old = err
		}
	}
	if old != nil {
		return nil, old
	}
	return nil, &NotFound{"clang is not installed"}
}

var errWindows = errors.New("programs for the CPU run on Linux and macOS; under Windows use WSL")

// known are compilers by path, time of change and size.
var known sync.Map

// probe asks the compiler for its version.
func probe(ctx context.Context, name string) (*Clang, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(path, info.ModTime(), info.Size())
	if c, ok := known.Load(key); ok {
		return c.(*Clang), nil
	}
	note := noteOf(path, key)
	out, err := os.ReadFile(note)
	if note == "" || err != nil || !local.IsOwn(note) || !release.Match(out) {
		if out, err = command(ctx, "", path, "--version"); err != nil {
			return nil, err
		}
		if note != "" { // where it cannot be written the compiler is asked again
			_ = atomicfile.WriteFile(note, 0o644, func(w io.Writer) error { _, err := w.Write(out); return err })
		}
	}
	m := release.FindSubmatch(out)
	if m == nil {
		return nil, &NotFound{path + " is not clang: it prints " + strconv.Quote(firstLine(out)) + " as its version"}
	}
	if major, _ := strconv.Atoi(string(m[2])); major < oldest {
		return nil, &NotFound{fmt.Sprintf("%s is clang %s, which is too old", path, m[1])}
	}
	c := &Clang{path, "clang " + string(m[1]), string(out)}
	known.Store(key, c)
	return c, nil
}

// noteOf is the file of the cache that holds what the compiler at path prints as its version; "" where
// there is none, or the compiler may be a script, which may start another one tomorrow.
func noteOf(path, key string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	var magic [4]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil || string(magic[:]) != elf.ELFMAG {
		return ""
	}
	dir, err := local.CacheDir("tools")
	if err != nil || local.MakeDir(dir) != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(dir, "clang-"+hex.EncodeToString(sum[:16]))
}

// ToolError reports that a compiler failed for a reason other than its input.
type ToolError struct{ Text string }

func (e *ToolError) Error() string { return e.Text }

// Failure reports that the tool is of no use as it is.
func (e *ToolError) Failure() artifact.Failure {
	return artifact.Failure{Reason: artifact.MissingTool, Help: "check that clang works: clang --version; $DMIR_CLANG names another one"}
}

// command runs a compiler in dir and returns what it prints. The error is a *ToolError,
// or that of ctx, upon which the compiler and what it started have ended.
func command(ctx context.Context, dir, path string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	if dir != "" {
		cmd.Env = append(os.Environ(), "TMPDIR="+dir) // temporary files of a killed compiler are deleted with the folder
	}
	together(cmd)
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	tally.Took(tally.Native, cmd.ProcessState)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		text := fmt.Sprintf("%s failed (%v)", path, err)
		if line := firstLine(out.Bytes()); line != "" {
			text += ": " + line
		}
		return out.Bytes(), &ToolError{text}
	}
	return out.Bytes(), nil
}

// firstLine is the first line with text, of messages the first that reports an error.
func firstLine(out []byte) string {
	first := ""
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); strings.Contains(line, "error:") {
			return line
		}
		if first == "" {
			first = line
		}
	}
	return first
}
