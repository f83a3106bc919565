//go:build !((linux || darwin || windows) && (amd64 || arm64))

package dylib

import (
	"errors"
	"runtime"
)

func open(string) (uintptr, error) {
	return 0, errors.New("shared libraries cannot be opened on " + runtime.GOOS + "/" + runtime.GOARCH)
}

func openGlobal(path string) (uintptr, error) { return open(path) }

func lookup(uintptr, string) (uintptr, error) { return 0, errors.New("no library is open") }

func register(any, uintptr) {}

// Call is never reached, since no library can be opened.
func (Func) Call(...uintptr) uintptr { return 0 }

// Callback is never reached, since no library can be opened.
func Callback(any) uintptr { return 0 }
