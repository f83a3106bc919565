// Package page renders the data of a panel as one HTML page that needs nothing
// else: no network, no other file. The same page works from a file, from a
// loopback address and in a VS Code web view. Its script and its style are
// bundles of the modules in web/src.
//
// The page's policy (a meta element) admits its own script and style by their
// hashes and nothing else. A host with a policy of its own that asks for nonces
// puts its nonce where Nonce stands.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"strings"
	"sync"
)

//go:generate ../../../scripts/build-web.sh

// Nonce is what stands in the nonce attribute of the page's script and style
// elements, and nowhere else.
const Nonce = "dmir-nonce-placeholder"

var (
	//go:embed assets/page.js
	script string
	//go:embed assets/page.css
	style string
)

var policy = sync.OnceValue(func() string {
	return strings.Join([]string{
		"default-src 'none'",
		"script-src " + hash(script),
		"style-src " + hash(style),
		"connect-src 'self'",
		"base-uri 'none'",
		"form-action 'none'",
	}, "; ")
})

// Render returns the page with a title and the JSON of a panel's data, which
// names the kind of the panel. The JSON may hold any text: what could end its
// element is escaped.
func Render(title string, json []byte) []byte {
	var b bytes.Buffer
	b.Grow(len(style) + len(script) + len(json) + 2048)
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
<script type="application/json" id="data">`, policy(), html.EscapeString(title), Nonce, style)
	b.Write(escape(json))
	fmt.Fprintf(&b, `</script>
<script nonce="%s">%s</script>
</body>
</html>
`, Nonce, script)
	return b.Bytes()
}

// escape replaces what HTML or old JavaScript would read as more than text by
// JSON's escapes: only a string can hold such a character in JSON.
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

// hash is a source of a content security policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
