package connection

import (
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

// Codec is the wire format of parameters and results: the protocol package's
// own, which handles the unions of the LSP.
type Codec struct{}

func (Codec) Marshal(v any) ([]byte, error) {
	if raw, ok := v.(jsonrpc2.RawMessage); ok {
		return raw, nil
	}
	return protocol.Marshal(v)
}

func (Codec) Unmarshal(data []byte, v any) error {
	if raw, ok := v.(*jsonrpc2.RawMessage); ok {
		*raw = append((*raw)[:0], data...)
		return nil
	}
	return protocol.Unmarshal(data, v)
}

// Decode reads parameters; what it returns may alias a copy of the message, so
// strings that are kept must be cloned.
func Decode[P any](raw jsonrpc2.RawMessage) (*P, error) {
	p := new(P)
	if len(raw) == 0 {
		return p, nil
	}
	if err := protocol.Unmarshal(raw, p); err != nil {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "malformed parameters: %v", err)
	}
	return p, nil
}

// RequestFailed is the error code of a well-formed request that cannot be met.
const RequestFailed = jsonrpc2.Code(protocol.LSPErrorCodesRequestFailed)
