// Package page draws the data of a panel as one HTML page that needs nothing
// else: no network, no other file. The same page works from a file, from a
// loopback address and in a VS Code web view.
//
// The page's policy (a meta element) admits its own script and style by their
// hashes and nothing else. A host with a policy of its own that asks for nonces
// puts its nonce where Nonce stands.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html"
	"strings"
	"sync"
)

// Nonce is what stands in the nonce attribute of the page's script and style
// elements, and nowhere else.
const Nonce = "dmir-nonce-placeholder"

//go:embed js/*.js assets/*.css
var files embed.FS

// common are the scripts of every page, and figures those of the pages with a
// figure, each kind with more of its own. All are concatenated, in this order.
var (
	common  = []string{"util", "host", "theme", "pen", "figure", "header", "help"}
	figures = []string{"view", "frame", "search", "card", "table", "input", "minimap", "paper"}
	own     = map[string][]string{
		"graph":    {"layout_rank", "layout_order", "layout_place", "layout", "graph_model", "graph_labels", "graph_draw", "graph", "open_graph"},
		"roofline": {"roofline", "open_roofline"},
		"memory":   {"memory", "open_memory"},
		"diff":     {"diff", "open_diff"},
	}
)

// parts are what is the same in every page of a kind.
type parts struct{ style, script, policy string }

var made sync.Map // kind to *parts

// Render is the page of a kind ("graph", "roofline", "memory" or "diff", else
// the page is empty), with its title and the JSON of its data. The JSON may
// hold any text: what could end its element is escaped.
func Render(kind, title string, json []byte) []byte {
	p := partsOf(kind)
	var b bytes.Buffer
	b.Grow(len(p.style) + len(p.script) + len(json) + 2048)
	fmt.Fprintf(&b, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<style nonce="%s">%s</style>
</head>
<body>
<noscript>This page draws its figure with a script.</noscript>
<script type="application/json" id="data">`, p.policy, html.EscapeString(title), Nonce, p.style)
	b.Write(escape(json))
	fmt.Fprintf(&b, `</script>
<script nonce="%s">%s</script>
</body>
</html>
`, Nonce, p.script)
	return b.Bytes()
}

// escape writes what HTML or old JavaScript would read as more than text in the
// form of JSON strings, the only place where a JSON text can hold it.
func escape(json []byte) []byte {
	var b bytes.Buffer
	b.Grow(len(json))
	for _, r := range string(json) {
		switch r {
		case '<', '>', '&', '\u2028', '\u2029':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

func partsOf(kind string) *parts {
	if p, done := made.Load(kind); done {
		return p.(*parts)
	}
	var names []string
	if scripts, ok := own[kind]; ok {
		names = append(names, common...)
		if kind != "diff" {
			names = append(names, figures...)
		}
		names = append(names, scripts...)
	}
	var script strings.Builder
	script.WriteString("\n(() => {\n\"use strict\";\n")
	for _, name := range names {
		script.WriteString(file("js/" + name + ".js"))
	}
	script.WriteString("})();\n")
	p := &parts{style: "\n" + file("assets/page.css"), script: script.String()}
	p.policy = strings.Join([]string{
		"default-src 'none'",
		"script-src " + hash(p.script),
		"style-src " + hash(p.style),
		"connect-src 'self'",
		"base-uri 'none'",
		"form-action 'none'",
	}, "; ")
	made.Store(kind, p)
	return p
}

// hash is a source of a content security policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// file is an embedded file that is known to be there.
func file(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the program was built without a part of itself
	}
	return string(text)
}
