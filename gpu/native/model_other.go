//go:build !linux && !darwin

package native

const supported = false

func model() string { return "CPU" }
