package nvidia

import (
	"os"
	"testing"

	"dmir/gpu/device"
)

func TestMain(m *testing.M) {
	device.Register(Kinds()...)
	Serve()
	os.Exit(m.Run())
}
