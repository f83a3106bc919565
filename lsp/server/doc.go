// Package server serves the Language Server Protocol over a pair of pipes. Each
// method of the protocol is a thin file that decodes, asks another package, mostly
// lsp/feature, and encodes. The package also keeps the settings and the life cycle,
// and wires together what the server consists of: connection, session, jobs, pages
// and diagnostics.
package server
