// Package server speaks the Language Server Protocol over a pair of pipes. It
// is the only place that knows the protocol's types: each method is a thin file
// that decodes, asks package feature, and encodes.
//
// The connection is built so that document changes apply in the order in which
// they arrive, so that no call delays another, and so that nothing an editor
// sends ends it but the end of its input: handlers that panic are answered with
// an internal error, malformed messages are refused, and notifications that
// fail are logged.
package server
