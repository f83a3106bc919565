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

	"dmir/internal/regular"
)

// LocalName is the name of the machine that dmir runs on, where dmir calibrate has
// measured it.
const LocalName = "local"

// Calibrate is how the local machine becomes known.
const Calibrate = "run dmir calibrate, which measures this machine's processor in a few seconds"

// ErrNotMeasured reports that there is no measurement of the local machine.
var ErrNotMeasured = errors.New("this machine was not measured yet")

// maxLocal bounds the file that is read; it has some tens of lines.
const maxLocal = 64 << 10

// LocalFile is where the local machine is described, in the user's configuration.
func LocalFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "dmir", LocalName+".toml"), nil
}

// measured is the local machine as it was last read. While its file stays as it is so
// does the pointer, by which costs are kept.
var measured struct {
	sync.Mutex
	path string
	at   time.Time
	size int64
	m    *Machine
	err  error
}

// Local is the machine that dmir runs on. The error is ErrNotMeasured where there is no
// file of it, and otherwise names the file.
func Local() (*Machine, error) {
	path, err := LocalFile()
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
	c := &measured
	c.Lock()
	defer c.Unlock()
	if c.path != path || !c.at.Equal(info.ModTime()) || c.size != info.Size() {
		c.path, c.at, c.size = path, info.ModTime(), info.Size()
		c.m, c.err = readLocal(path, info)
	}
	return c.m, c.err
}

func readLocal(path string, info fs.FileInfo) (*Machine, error) {
	if !info.Mode().IsRegular() || info.Size() > maxLocal {
		return nil, fmt.Errorf("%s is no description of a machine", path)
	}
	text, err := regular.ReadFile(path, maxLocal)
	if err != nil {
		return nil, err
	}
	m, err := parseLocal(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func parseLocal(text []byte) (*Machine, error) {
	s, err := decode(LocalName, text)
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
	case IsLocal(s.Base):
		return nil, errors.New("the machine local cannot build on itself")
	}
	m, err := s.Build(LocalName)
	if err == nil && !m.CPU {
		err = errors.New("the machine local is a processor, and cpu = true is missing")
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

// NoLocal is why there is no local machine; nil where there is one.
func NoLocal() *LocalError {
	_, err := Local()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotMeasured):
		return &LocalError{err, Calibrate}
	}
	return &LocalError{err, "dmir calibrate writes it again"}
}

// IsLocal reports whether name is that of the local machine.
func IsLocal(name string) bool { return strings.EqualFold(name, LocalName) }

// Host is the machine that stands for the processor that dmir runs on: the local one
// where it was measured, else the built-in "cpu".
func Host() *Machine {
	if m, err := Local(); err == nil {
		return m
	}
	return builtin()["cpu"]
}
