package diag

// Code documents one kind of diagnostic, for dmir explain and for editors.
type Code struct {
	Code string // "DM001"
	Name string // "not-text"
	Doc  string // what it means, in Markdown
	Help string // what to do about it, may be empty
}
