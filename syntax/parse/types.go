package parse

// isScalar reports whether a word is a builtin scalar type.
func isScalar(w string) bool {
	switch w {
	case "index", "none", "bf16", "f16", "f32", "f64", "f80", "f128", "tf32":
		return true
	}
	rest := ""
	switch {
	case len(w) > 2 && (w[:2] == "si" || w[:2] == "ui"):
		rest = w[2:]
	case len(w) > 1 && w[0] == 'i':
		rest = w[1:]
	case len(w) > 2 && w[0] == 'f' && w[1] >= '4' && w[1] <= '8':
		return run(w, 2, len(w), cWord) == len(w) // f8E4M3FN and its kin
	default:
		return false
	}
	return run(rest, 0, len(rest), cDigit) == len(rest)
}
