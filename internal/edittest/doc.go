// Package edittest makes random sequences of edits for tests: what people do to
// a program and unusual ones, at places where an editor has a position. A
// sequence that shows a fault can be made smaller.
package edittest
