// Package notices holds the licences of third-party software in the binary.
package notices

import _ "embed"

//go:generate go run ./gen -npm

// Text names each module with its version and has the text of its licence.
//
//go:embed THIRD_PARTY_NOTICES.txt
var Text string
