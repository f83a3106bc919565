package artifact_test

import (
	"bytes"
	"slices"
	"testing"

	"dmir/gpu/artifact"
)

// Machine code comes apart as it was put together, and damaged code is no part.
func TestParts(t *testing.T) {
	for _, parts := range [][][]byte{{[]byte("\x7fELF")}, {[]byte("a"), {}, []byte("bc")}, {{}, {}}} {
		code := artifact.Join(parts)
		got, ok := artifact.Parts(code)
		if !ok || !slices.EqualFunc(got, parts, bytes.Equal) {
			t.Errorf("%q came apart as %q, %t", parts, got, ok)
		}
		if len(parts) < 2 {
			continue
		}
		if _, ok := artifact.Parts(code[:len(code)-1]); ok {
			t.Errorf("%q without its last byte has parts", code)
		}
	}
}
