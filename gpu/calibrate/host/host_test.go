package host

import (
	"testing"

	"dmir/gpu/calibrate"
	"dmir/gpu/native"
	"dmir/testkit/need"
)

// The processor of this machine is measured.
func TestThisMachine(t *testing.T) {
	need.Long(t)
	_, err := native.Find(t.Context())
	need.OK(t, err)
	f, err := calibrate.Measure(t.Context(), func(string, int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if f.Title == "" || f.Threads < 1 || !(f.Move.Both > 0 && f.F32.FMA > 0 && f.F64.Add > 0 && f.Launch > 0) {
		t.Errorf("got %+v", f)
	}
}
