//go:build !unix && !windows

package server

// alive cannot be told here; the end of the input ends the server.
func alive(int) bool { return false }
