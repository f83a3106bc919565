package server

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// cutText takes the text of a document out of the parameters of didOpen: rest
// is the parameters with an empty text. It is for large texts, which the decoder
// of the protocol reads several times over. ok is false where the text is not
// found, or is not as JSON has it; then raw is to be decoded as a whole.
func cutText(raw []byte) (rest []byte, text string, ok bool) {
	depth := 0
	var keys [2]string // of the object in the parameters, and in it
	for i := 0; i < len(raw); {
		switch raw[i] {
		case '{', '[', ',':
			if raw[i] != ',' {
				depth++
			}
			if 1 <= depth && depth <= len(keys) {
				keys[depth-1] = "" // a key comes
			}
		case '}', ']':
			depth--
		case '"':
			if depth == 2 && keys == [2]string{"textDocument", "text"} {
				text, n, ok := unescape(raw[i+1:])
				if !ok {
					return nil, "", false
				}
				end := i + 1 + n // behind the quote
				rest = append(append(bytes.Clone(raw[:i]), `""`...), raw[end:]...)
				return rest, text, true
			}
			end := closingQuote(raw, i+1)
			if end < 0 {
				return nil, "", false
			}
			name := raw[i+1 : end]
			i = end
			next := i + 1
			for next < len(raw) && (raw[next] == ' ' || raw[next] == '\t' || raw[next] == '\n' || raw[next] == '\r') {
				next++
			}
			if next < len(raw) && raw[next] == ':' && 1 <= depth && depth <= len(keys) {
				keys[depth-1] = string(name)
				i = next
			}
		}
		i++
	}
	return nil, "", false
}

// closingQuote is where the string ends that begins at from, -1 where it does not.
func closingQuote(raw []byte, from int) int {
	for i := from; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// unescape reads the string of JSON that raw begins with, behind its quote; n is
// its length with the quote that ends it.
func unescape(raw []byte) (text string, n int, ok bool) {
	const low, high = 0x0101010101010101, 0x8080808080808080
	has := func(word uint64, c byte) uint64 { // not zero where a byte of word is c
		word ^= low * uint64(c)
		return (word - low) &^ word & high
	}
	escapes := bytes.Count(raw, []byte{'\\'}) + 4*bytes.Count(raw, []byte{'\\', 'u'})
	out := make([]byte, 0, max(len(raw)-escapes, 0)+8) // about its length
	for at := 0; at < len(raw); {
		if at+8 <= len(raw) && len(out)+8 <= cap(out) { // eight bytes at a time, those before an escape
			word := binary.LittleEndian.Uint64(raw[at:])
			plain := bits.TrailingZeros64(has(word, '\\')|has(word, '"')) / 8
			binary.LittleEndian.PutUint64(out[len(out):len(out)+8], word)
			out = out[:len(out)+plain]
			if at += plain; plain == 8 {
				continue
			}
		}
		switch raw[at] {
		case '"':
			text = unsafe.String(unsafe.SliceData(out), len(out))
			return text, at + 1, utf8.ValidString(text)
		case '\\':
			if out, at, ok = escaped(out, raw, at+1); !ok {
				return "", 0, false
			}
		default:
			out = append(out, raw[at])
			at++
		}
	}
	return "", 0, false
}

// escaped appends the character escaped by the backslash before at, and returns the
// place behind it.
func escaped(out, raw []byte, at int) ([]byte, int, bool) {
	if at >= len(raw) {
		return nil, 0, false
	}
	switch c := raw[at]; c {
	case '"', '\\', '/':
		return append(out, c), at + 1, true
	case 'n':
		return append(out, '\n'), at + 1, true
	case 't':
		return append(out, '\t'), at + 1, true
	case 'r':
		return append(out, '\r'), at + 1, true
	case 'b':
		return append(out, '\b'), at + 1, true
	case 'f':
		return append(out, '\f'), at + 1, true
	case 'u':
		r, ok := hexRune(raw[at-1:])
		if !ok {
			return nil, 0, false
		}
		at += 5
		if utf16.IsSurrogate(r) {
			low, _ := hexRune(raw[at:])
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				return nil, 0, false // half a surrogate pair is left to the decoder
			}
			at += 6
		}
		return utf8.AppendRune(out, r), at, true
	}
	return nil, 0, false
}

// hexRune reads the \uXXXX that raw begins with.
func hexRune(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}
