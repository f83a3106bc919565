// Package dylib opens shared libraries at run time, without cgo. On platforms
// without support it builds and returns an error.
package dylib

import (
	"fmt"
	"reflect"
	"strings"
)

// Lib is an open library. It stays open until the process ends, since
// threads and exit handlers that it started may live that long.
type Lib struct {
	Path   string // as it was given to Open
	handle uintptr
}

// Open opens the library at path, or by bare name where the system's linker
// looks for libraries.
func Open(path string) (*Lib, error) {
	h, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	return &Lib{path, h}, nil
}

// OpenGlobal is Open with the library's symbols visible to libraries opened later.
func OpenGlobal(path string) (*Lib, error) {
	h, err := openGlobal(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	return &Lib{path, h}, nil
}

// Func is the address of a function of integers and pointers. Call takes a quarter of the time that a
// Go function of Bind takes: for what is called in a loop.
type Func uintptr

// Bind sets the function that fn points to to the library's function name. The
// Go signature must be the C function's; a Func has none.
func (l *Lib) Bind(name string, fn any) error {
	addr, err := l.Address(name)
	if err != nil {
		return err
	}
	if f, ok := fn.(*Func); ok {
		*f = Func(addr)
		return nil
	}
	register(fn, addr)
	return nil
}

// Address is where the library has name, a function or a variable.
func (l *Lib) Address(name string) (uintptr, error) {
	addr, err := lookup(l.handle, name)
	if err != nil {
		return 0, fmt.Errorf("%s has no %s: %w", l.Path, name, err)
	}
	return addr, nil
}

// BindAll binds the fields of the struct that table points to that are functions
// tagged `c:"name"`. A tag `c:"name,optional"` leaves the field nil
// where the library has no such function; `c:"name_v2|name"` takes the first of
// several names that there is.
func (l *Lib) BindAll(table any) error {
	v := reflect.ValueOf(table).Elem()
	for i := range v.NumField() {
		tag, ok := v.Type().Field(i).Tag.Lookup("c")
		if !ok {
			continue
		}
		names, optional := parseTag(tag)
		var err error
		for _, name := range names {
			if err = l.Bind(name, v.Field(i).Addr().Interface()); err == nil {
				break
			}
		}
		if err != nil && !optional {
			return err
		}
	}
	return nil
}

// parseTag splits "name_v2|name,optional".
func parseTag(tag string) (names []string, optional bool) {
	tag, optional = strings.CutSuffix(tag, ",optional")
	return strings.Split(tag, "|"), optional
}
