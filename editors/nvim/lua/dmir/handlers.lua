-- Handlers of requests that Neovim does not support, or handles in another way; for lsp/dmir.lua.
local view = require('dmir.view')

return {
  -- Virtual documents are shown beside the program, not in its window.
  ['window/showDocument'] = function(err, params, context, config)
    if not vim.startswith(params.uri, 'dmir:') then
      return vim.lsp.handlers['window/showDocument'](err, params, context, config)
    end
    view.show(params.uri, context.client_id, params.selection)
    return { success = true }
  end,
  ['workspace/textDocumentContent/refresh'] = function(_, params)
    view.refresh(params.uri)
    return vim.NIL
  end,
  ['workspace/inlayHint/refresh'] = function(err, params, context, config)
    require('dmir.column').refresh()
    return vim.lsp.handlers['workspace/inlayHint/refresh'](err, params, context, config)
  end,
  -- Findings arrive after a pause, with a refresh. Neovim 0.12 then requests the diagnostics of the workspace, from which it
  -- excludes open buffers.
  ['workspace/diagnostic/refresh'] = function(_, _, context)
    local client = assert(vim.lsp.get_client_by_id(context.client_id))
    local provider = client.server_capabilities.diagnosticProvider
    for buffer in pairs(client.attached_buffers) do
      require('dmir.client').request(client, 'textDocument/diagnostic', {
        identifier = type(provider) == 'table' and provider.identifier or nil,
        textDocument = vim.lsp.util.make_text_document_params(buffer),
      }, nil, buffer)
    end
    return vim.NIL
  end,
}
