package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pelletier/go-toml/v2"

	"dmir/base/regular"
)

// The names of the machines that dmir calibrate has measured: the processor that dmir runs on, and its first GPU.
const (
	LocalName = "local"
	LocalCard = "local-cuda"
)

// calibrations are the commands by which local machines become known, and what these do.
var calibrations = map[string]struct{ command, does string }{
	LocalName: {"dmir calibrate", "measures this machine's processor in a few seconds"},
	LocalCard: {"dmir calibrate --device cuda", "measures this machine's GPU in about a minute"},
}

// ErrNotMeasured reports that there is no measurement of the local machine.
var ErrNotMeasured = errors.New("this machine was not measured yet")

// maxLocal bounds the file that is read; it has some tens of lines.
const maxLocal = 64 << 10

// LocalFile is where a local machine is described, in the user's configuration.
func LocalFile(name string) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "dmir", name+".toml"), nil
}

// A measured machine is a local one as it was last read. While its file stays as it is so
// does the pointer, by which costs are kept.
type measured struct {
	sync.Mutex
	path string
	at   time.Time
	size int64
	m    *Machine
	err  error
}

var locals = map[string]*measured{LocalName: {}, LocalCard: {}}

// Local is the local machine of a name, LocalName or LocalCard. The error is ErrNotMeasured where there is no
// file of it, and otherwise names the file.
func Local(name string) (*Machine, error) {
	path, err := LocalFile(name)
	if err != nil {
		return nil, ErrNotMeasured
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNotMeasured
	case err != nil:
		return nil, err
	}
	c := locals[name]
	c.Lock()
	defer c.Unlock()
	if c.path != path || !c.at.Equal(info.ModTime()) || c.size != info.Size() {
		c.path, c.at, c.size = path, info.ModTime(), info.Size()
		c.m, c.err = readLocal(name, path, info)
	}
	return c.m, c.err
}

func readLocal(name, path string, info fs.FileInfo) (*Machine, error) {
	if !info.Mode().IsRegular() || info.Size() > maxLocal {
		return nil, fmt.Errorf("%s is no description of a machine", path)
	}
	text, err := regular.ReadFile(path, maxLocal)
	if err != nil {
		return nil, err
	}
	m, err := parseLocal(name, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func parseLocal(name string, text []byte) (*Machine, error) {
	s, err := decode(name, text)
	var unknown *toml.StrictMissingError
	var invalid *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		row, _ := unknown.Errors[0].Position()
		return nil, fmt.Errorf("line %d: unknown key %s", row, strings.Join(unknown.Errors[0].Key(), "."))
	case errors.As(err, &invalid):
		row, _ := invalid.Position()
		return nil, fmt.Errorf("line %d: %s", row, strings.TrimPrefix(invalid.Error(), "toml: "))
	case err != nil:
		return nil, err
	case IsLocal(s.Base) || IsLocal(s.Like): // whose lock the caller may hold
		return nil, fmt.Errorf("the machine %s cannot build on itself", name)
	}
	m, err := s.Build(name)
	switch {
	case err != nil:
	case name == LocalName && !m.CPU:
		err = errors.New("the machine local is a processor, and cpu = true is missing")
	case name == LocalCard && m.CPU:
		err = errors.New("the machine " + LocalCard + " is a GPU, and has cpu = true")
	}
	return m, err
}

// A LocalError is why there is no local machine, and what to do.
type LocalError struct {
	Err  error
	Help string
}

func (e *LocalError) Error() string { return e.Err.Error() + "; " + e.Help }

func (e *LocalError) Unwrap() error { return e.Err }

// NoLocal is why there is no local machine of a name; nil where there is one, and for other names.
func NoLocal(name string) *LocalError {
	name = strings.ToLower(name)
	if !IsLocal(name) {
		return nil
	}
	c := calibrations[name]
	_, err := Local(name)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotMeasured):
		return &LocalError{err, "run " + c.command + ", which " + c.does}
	}
	return &LocalError{err, c.command + " writes it again"}
}

// IsLocal reports whether name is that of a local machine.
func IsLocal(name string) bool { return locals[strings.ToLower(name)] != nil }

// IsHost reports whether name is that of the processor that dmir runs on.
func IsHost(name string) bool { return strings.EqualFold(name, LocalName) }

// Host is the machine that stands for the processor that dmir runs on: the local one
// where it was measured, else the built-in "cpu".
func Host() *Machine {
	if m, err := Local(LocalName); err == nil {
		return m
	}
	return builtin()["cpu"]
}
