package diag

// Code documents one kind of diagnostic, for dmir explain and for editors.
type Code struct {
	Code string // "DM001"
	Name string // "not-text"
	Doc  string // what it means, in Markdown
	Help string // what to do about it, may be empty
}

// Find is the entry of codes for code, the zero Code where there is none.
func Find(codes []Code, code string) Code {
	for _, c := range codes {
		if c.Code == code {
			return c
		}
	}
	return Code{}
}
