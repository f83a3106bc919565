//go:build !amd64

package interp

var haveFMA = false

func fma6x16(int, *float32, *float32, *float32, int) {}
