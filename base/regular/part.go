package regular

import (
	"math"
	"os"
	"sync"
)

// parts are the files that are mapped for Part. One that has changed is mapped again.
var parts struct {
	sync.Mutex
	files []mappedFile
}

type mappedFile struct {
	info os.FileInfo
	data []byte
}

// Part is size bytes of the open file f from at on, as Mapped; nil where it cannot be mapped or has
// not as many. All parts of a file are in one mapping.
func Part(f *os.File, at, size int64) []byte {
	info, err := f.Stat()
	if err != nil || at < 0 || size < 0 || at > info.Size() || size > info.Size()-at {
		return nil
	}
	parts.Lock()
	defer parts.Unlock()
	for _, m := range parts.files {
		if os.SameFile(m.info, info) && m.info.Size() == info.Size() && m.info.ModTime().Equal(info.ModTime()) {
			return m.data[at : at+size : at+size]
		}
	}
	data := Mapped(f, math.MaxInt)
	if int64(len(data)) != info.Size() {
		return nil
	}
	parts.files = append(parts.files, mappedFile{info, data})
	return data[at : at+size : at+size]
}
