package artifact

import "encoding/binary"

// partsMagic begins machine code that is in several parts: each is its length, 64 bits in little-endian
// order, and its bytes.
const partsMagic = "\x89DMPARTS"

// Join is machine code that was made in parts, as one Image has it. One part is itself.
func Join(parts [][]byte) []byte {
	if len(parts) == 1 {
		return parts[0]
	}
	out := []byte(partsMagic)
	for _, p := range parts {
		out = append(binary.LittleEndian.AppendUint64(out, uint64(len(p))), p...)
	}
	return out
}

// Parts are the parts of code that Join has put together; ok is false where it is damaged.
func Parts(code []byte) (parts [][]byte, ok bool) {
	if len(code) < len(partsMagic) || string(code[:len(partsMagic)]) != partsMagic {
		return [][]byte{code}, true
	}
	for code = code[len(partsMagic):]; len(code) > 0; {
		if len(code) < 8 {
			return nil, false
		}
		n := binary.LittleEndian.Uint64(code)
		if code = code[8:]; n > uint64(len(code)) {
			return nil, false
		}
		parts, code = append(parts, code[:n]), code[n:]
	}
	return parts, true
}
