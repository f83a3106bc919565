package device

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	Serve()
	os.Exit(m.Run())
}
