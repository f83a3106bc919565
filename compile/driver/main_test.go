package driver

import (
	"os"
	"testing"

	_ "dmir/compile/target/all"
	"dmir/gpu/device/nvidia"
)

func TestMain(m *testing.M) {
	nvidia.Serve()
	os.Exit(m.Run())
}
