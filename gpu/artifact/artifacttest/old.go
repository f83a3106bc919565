package artifacttest

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/hex"
	"io"
)

//go:embed testdata/version2.dmx.gz
var version2 []byte

// Version2 is a file of version 2 of the .dmx format, as dmir wrote it then, and
// the key that signs it. Its function adds {1, 2, … 8} to its first argument, 8
// numbers, as many times as its second one; the results are that times {1, 2, … 8},
// and that.
func Version2() (file, key []byte) {
	z, err := gzip.NewReader(bytes.NewReader(version2))
	if err != nil {
		panic(err)
	}
	if file, err = io.ReadAll(z); err != nil {
		panic(err)
	}
	if key, err = hex.DecodeString("1b1c73b89efda9bbc27fe35a4b3f436ebd9489005dec5c4f078136d133c03db2"); err != nil {
		panic(err)
	}
	return file, key
}
