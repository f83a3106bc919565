package server

import (
	"unicode/utf16"

	"go.lsp.dev/protocol"

	"dmir/lsp/feature"
	"dmir/lsp/session"
)

var signatureHelp = onPosition(
	func(p *protocol.SignatureHelpParams) *protocol.TextDocumentPositionParams {
		return &p.TextDocumentPositionParams
	},
	func(s *server, p session.Place, off int, _ *protocol.SignatureHelpParams) (any, error) {
		sig := feature.SignatureAt(p.Program(), off)
		if sig == nil {
			return nil, nil
		}
		info := protocol.SignatureInformation{
			Label:         sig.Label,
			Documentation: markup(feature.Documentation(sig.Op), s.Features.PlainSignature),
		}
		for _, param := range sig.Params {
			var label protocol.ParameterInformationLabel = protocol.String(sig.Label[param.Start:param.End])
			if s.Features.LabelOffsets {
				label = protocol.ParameterInformationLabelTuple{labelUnits(sig.Label[:param.Start]), labelUnits(sig.Label[:param.End])}
			}
			info.Parameters = append(info.Parameters, protocol.ParameterInformation{
				Label: label, Documentation: markup(param.Doc, s.Features.PlainSignature),
			})
		}
		active := uint32(len(info.Parameters)) // none of them
		if sig.Active >= 0 {
			active = uint32(sig.Active)
		}
		return &protocol.SignatureHelp{
			Signatures: []protocol.SignatureInformation{info}, ActiveSignature: new(uint32), ActiveParameter: protocol.NewNullable(active),
		}, nil
	})

// labelUnits is the length of s in UTF-16, in which places in labels count whatever
// the encoding of positions is.
func labelUnits(s string) uint32 { return uint32(len(utf16.Encode([]rune(s)))) }
