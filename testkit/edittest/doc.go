// Package edittest generates random sequences of edits for tests, common and unusual
// ones, at positions that an editor can have. A failing sequence can be shrunk.
package edittest
