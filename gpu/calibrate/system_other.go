//go:build !linux && !darwin

package calibrate

// system knows nothing: programs do not run on this system's processors.
func system() processor { return processor{} }
