package session

import (
	"net/url"
	"path"
	"strings"
)

// ViewScheme is the scheme of virtual documents: dmir:/VIEW/NAME.EXT?DOCUMENT, the
// address of the document percent-encoded and followed by " @FUNCTION" if the view
// is of one function, " @VERSION" if it is another version of the document; and
// dmir:/rule/CODE.md.
const ViewScheme = "dmir"

// RuleView is the view of the documentation of a code, CUDAView that of the kernels
// of a function as CUDA C++, VersionView that of another version of the document.
const (
	RuleView    = "rule"
	CUDAView    = "cuda"
	VersionView = "version"
)

// PlansView is the view of the plans of a function as a table; PlannedPrefix with the number of
// one, from 1, is the program with that plan in it.
const (
	PlansView     = "plans"
	PlannedPrefix = "planned-"
)

// form is what the address of a view depends on.
type form struct {
	ext         string
	perFunction bool // or per version
}

var forms = map[string]form{
	RuleView:    {ext: ".md"},
	"generic":   {ext: ".mlir"},
	"expanded":  {ext: ".dmir"},
	"converted": {ext: ".dmir"},
	"fixed":     {ext: ".dmir"},
	VersionView: {ext: ".dmir", perFunction: true},
	"cost":      {ext: ".txt"},
	CUDAView:    {ext: ".cu", perFunction: true},
	"ptx":       {ext: ".ptx", perFunction: true},
	PlansView:   {ext: ".txt", perFunction: true},
}

// formOf returns the form of a view; those after a pass and with a plan have one form.
func formOf(view string) form {
	if strings.HasPrefix(view, "after-") || strings.HasPrefix(view, PlannedPrefix) {
		return form{ext: ".dmir", perFunction: true}
	}
	return forms[view]
}

// NoProgram reports whether an address is that of a virtual document which holds
// no program: code, a table, documentation.
func NoProgram(at string) bool {
	v, ok := ParseView(at)
	ext := formOf(v.Name).ext
	return ok && ext != ".dmir" && ext != ".mlir"
}

// RuleAddress is the address of the documentation of a code.
func RuleAddress(code string) string {
	return ViewScheme + ":/" + RuleView + "/" + code + formOf(RuleView).ext
}

// View is what the address of a virtual document names.
type View struct {
	Name     string
	File     string // the last part of the address's path
	Document string // "" for rules
	Func     string // without "@", or the version; "" where the view is of the whole program, or of its only function
}

// ViewAddress is the address of a view of a document, of one of its functions, or of
// one of its versions.
func ViewAddress(name, document, fn string) string {
	base := path.Base(document)
	if u, err := url.Parse(document); err == nil {
		base = path.Base(u.Path)
		if u.Opaque != "" {
			base = path.Base(u.Opaque)
		}
	}
	base = strings.TrimSuffix(base, path.Ext(base))
	query := document
	if fn != "" {
		query += funcMark + fn
		if name == VersionView {
			fn = base + "@" + strings.TrimPrefix(fn, "git:")
		}
		base = strings.Map(func(r rune) rune {
			if strings.ContainsRune("/\\?#% ", r) {
				return '_'
			}
			return r
		}, fn)
	}
	if strings.Trim(base, "/.") == "" {
		base = "program"
	}
	u := url.URL{Scheme: ViewScheme, OmitHost: true, Path: "/" + name + "/" + base + formOf(name).ext, RawQuery: strings.ReplaceAll(url.QueryEscape(query), "+", "%20")}
	return u.String()
}

// funcMark stands between the address of a document, which holds no blank, and
// the name of a function.
const funcMark = " @"

// ParseView parses the address of a view; ok is false for any other address.
func ParseView(address string) (v View, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != ViewScheme {
		return View{}, false
	}
	parts := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	query, err := url.PathUnescape(u.RawQuery)
	if err != nil || len(parts) != 2 {
		return View{}, false
	}
	v.Name, v.File, v.Document = parts[0], parts[1], query
	if formOf(v.Name).perFunction {
		v.Document, v.Func, _ = strings.Cut(query, funcMark)
	}
	return v, true
}
