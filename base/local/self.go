package local

import (
	"bytes"
	"debug/elf"
	"os"
	"sync"
)

// Self distinguishes this build of the program from others: what it has put into a cache no other one
// can read.
var Self = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	if id := buildID(path); id != "" {
		return id, nil
	}
	return sumOf(path)
})

// buildID is what the linker has written into an ELF file, a hash of all that it was made of.
func buildID(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	s := f.Section(".note.go.buildid")
	if s == nil {
		return ""
	}
	note, err := s.Data()
	if err != nil || len(bytes.Trim(note[min(len(note), 16):], "\x00")) < 40 {
		return ""
	}
	return string(note)
}
