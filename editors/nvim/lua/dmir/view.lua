-- Virtual documents: a program at another level, which the server writes and refreshes while the program is edited. Neovim
-- has no workspace/textDocumentContent of its own, so buffers named dmir:/… are filled here.
local request = require('dmir.client').request
local M = {}

local filetypes = { dmir = 'dmir', mlir = 'dmir', md = 'markdown' }

local function client_of(buffer)
  local id = vim.b[buffer].dmir_client
  return id and vim.lsp.get_client_by_id(id) or vim.lsp.get_clients({ name = 'dmir' })[1]
end

---Fills a buffer with what its name stands for.
---@param buffer integer
function M.fill(buffer)
  local client = client_of(buffer)
  if not client then
    return vim.notify('no dmir server is running', vim.log.levels.WARN)
  end
  local uri = vim.api.nvim_buf_get_name(buffer)
  vim.b[buffer].dmir_client = client.id
  vim.bo[buffer].buftype = 'nofile'
  vim.bo[buffer].bufhidden = 'wipe'
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].modifiable = false
  if vim.bo[buffer].filetype == '' then
    vim.bo[buffer].filetype = filetypes[uri:match('%.(%w+)%?') or uri:match('%.(%w+)$')] or 'text'
  end
  request(client, 'workspace/textDocumentContent', { uri = uri }, function(err, result)
    if not vim.api.nvim_buf_is_valid(buffer) then
      return
    end
    local lines = vim.split(err and err.message or result.text, '\n')
    if lines[#lines] == '' then
      lines[#lines] = nil
    end
    vim.bo[buffer].modifiable = true
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
    vim.bo[buffer].modifiable = false
    vim.bo[buffer].modified = false
  end)
end

---Shows a virtual document beside the window in use, or in the window that has it.
---@param uri string
---@param client_id integer
function M.show(uri, client_id)
  local buffer = vim.fn.bufadd(uri)
  local window = vim.fn.bufwinid(buffer)
  if window ~= -1 then
    vim.api.nvim_set_current_win(window)
    return
  end
  vim.b[buffer].dmir_client = client_id
  vim.cmd('rightbelow vertical sbuffer ' .. buffer)
end

---Writes the buffers that show a virtual document anew.
---@param uri string
function M.refresh(uri)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.api.nvim_buf_get_name(buffer) == uri then
      M.fill(buffer)
    end
  end
end

return M
