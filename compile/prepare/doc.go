// Package prepare makes a function fit for the passes that follow: one body
// without calls (Inline), and numbers where its types have symbols (Bind).
package prepare
