package server

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
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
	var b strings.Builder
	b.Grow(len(raw) - bytes.Count(raw, []byte{'\\'}))
	quote := -1 // the next one
	for at := 0; ; {
		if quote < at {
			if quote = bytes.IndexByte(raw[at:], '"'); quote < 0 {
				return "", 0, false
			}
			quote += at
		}
		plain := bytes.IndexByte(raw[at:quote], '\\')
		if plain < 0 {
			b.Write(raw[at:quote])
			text = b.String()
			return text, quote + 1, utf8.ValidString(text)
		}
		b.Write(raw[at : at+plain])
		at += plain
		if at+1 >= len(raw) {
			return "", 0, false
		}
		switch c := raw[at+1]; c {
		case '"', '\\', '/':
			b.WriteByte(c)
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			r, ok := hexRune(raw[at:])
			if !ok {
				return "", 0, false
			}
			at += 4
			if utf16.IsSurrogate(r) {
				low, _ := hexRune(raw[at+2:])
				if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
					return "", 0, false // half a pair: what becomes of it is the decoder's to say
				}
				at += 6
			}
			b.WriteRune(r)
		default:
			return "", 0, false
		}
		at += 2
	}
}

// hexRune reads the \uXXXX that raw begins with.
func hexRune(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}
