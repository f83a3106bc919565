package driver

import (
	"os"
	"testing"

	"dmir/gpu/device"
)

func TestMain(m *testing.M) {
	device.Serve()
	os.Exit(m.Run())
}
