package stablehlo

import (
	"dmir/dialect/types"
	"dmir/syntax/ast"
	"dmir/syntax/lex"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// resources are the blobs of {-# dialect_resources: {builtin: {key: "0x…"}} #-}, as they
// are written, by their keys.
func resources(src *source.File, items []*ast.Op) map[string]string {
	out := map[string]string{}
	for _, t := range items {
		if t.Form != ast.Resource {
			continue
		}
		text := src.Slice(t.Span())
		c := lex.New(text, 0, len(text))
		c.Mode = lex.Sections
		var path []string // the keys around
		key := ""
		for tok := c.Next(); tok.Kind != lex.EOF; tok = c.Next() {
			word := text[tok.Start:tok.End]
			switch {
			case word == "{":
				path = append(path, key)
			case word == "}":
				path = path[:max(len(path)-1, 0)]
			case word == ":" || word == ",":
			case tok.Kind == lex.String && len(path) == 2 && path[0] == "dialect_resources" && path[1] == "builtin" && out[key] == "" && key != "":
				out[key], key = parse.Unquote(word), ""
				continue
			default:
				key = parse.Unquote(word)
			}
		}
	}
	return out
}

// resource is the literal dense_resource<key> as type t.
func (c *importer) resource(x *ast.AttrExpr, t *types.Tensor) (*types.Dense, error) {
	blob, ok := c.blobs()[x.Str]
	switch {
	case x.Str == "__elided__":
		return nil, &types.Error{Code: "DM141", Msg: "the elements of the constant were left out when the program was printed; large_elements_limit=None prints them"}
	case !ok:
		return nil, &types.Error{Code: "DM141", Msg: "no {-# … #-} section has the resource " + parse.Quote(x.Str)}
	}
	return types.BlobOf(t, blob)
}
