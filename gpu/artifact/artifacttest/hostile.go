package artifacttest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"

	"dmir/gpu/artifact"
)

// Mutated is p as a .dmx file with other values in one to three places of its
// header and the checksum of what it holds.
func Mutated(p *artifact.Program, r *rand.Rand) []byte {
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		panic(err)
	}
	return MutatedFile(b.Bytes(), r)
}

// MutatedFile is Mutated of a file of any version.
func MutatedFile(file []byte, r *rand.Rand) []byte {
	size := binary.LittleEndian.Uint64(file[12:])
	var doc any
	if err := json.Unmarshal(file[20:20+size], &doc); err != nil {
		panic(err)
	}
	for range 1 + r.IntN(3) {
		doc = spoil(doc, r)
	}
	header, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return Sealed(file[8], header, file[20+size:len(file)-sha256.Size])
}

// Sealed is a .dmx file of a version, a header and what follows it, with their
// checksum.
func Sealed(version byte, header, blobs []byte) []byte {
	head := append([]byte(artifact.Magic), version, 0, 0, 0)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(header)))
	file := slices.Concat(head, header, blobs)
	sum := sha256.Sum256(file)
	return append(file, sum[:]...)
}

// odd are invalid values of fields.
var odd = []any{
	nil, true, "", "x\n\"*/", "i1", "f32", "map", -1, 0, 1, 2, 3, 7, 255, 256, 4096, 1 << 31, 1 << 53, int64(1) << 62, -(int64(1) << 62), 0.5, 1e300,
	[]any{},
	[]any{0},
	[]any{1, 0},
	[]any{-1},
	[]any{1 << 40, 1 << 40},
	[]any{0, int64(1) << 62, int64(1) << 62},
	[]any{2, 2},
	[]any{nil},
	map[string]any{},
	map[string]any{"Shape": []any{1000}, "Order": []any{0, 0}},
	map[string]any{"Shape": []any{10, 100}, "Order": []any{5}},
	[]any{map[string]any{"Shape": []any{7}}},
	[]any{map[string]any{"Shape": []any{1000}, "Order": []any{1}}, nil},
	[]any{map[string]any{"Shape": []any{-1000}}},
	[]any{nil, nil, nil},
}

// spoil replaces, repeats or removes one value in doc, each with the same
// probability at any depth.
func spoil(doc any, r *rand.Rand) any {
	n := r.IntN(count(doc))
	var visit func(v any) any
	visit = func(v any) any {
		if n--; n == -1 {
			return odd[r.IntN(len(odd))]
		}
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				v[k] = visit(v[k])
			}
		case []any:
			for i := range v {
				v[i] = visit(v[i])
			}
			if n == 0 && len(v) > 0 { // the next would be behind it
				v = append(v, v[r.IntN(len(v))])
			}
			return v
		}
		return v
	}
	return visit(doc)
}

// count is the number of values in v.
func count(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			n += count(x)
		}
	case []any:
		for _, x := range v {
			n += count(x)
		}
	}
	return n
}
