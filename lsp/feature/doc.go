// Package feature answers what editors ask, as plain data over an analysed
// program: hints, hovers, lenses, places, edits. It uses neither the wire nor
// the protocol; offsets are bytes of the program's text.
package feature
