//go:build !unix && !windows

package server

// alive is not known here; the end of the input ends the server.
func alive(int) bool { return false }
