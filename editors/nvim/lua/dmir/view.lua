-- Virtual documents: views of a program, which the server refreshes while the program is edited. Neovim does not support
-- workspace/textDocumentContent, so this module fills buffers named dmir:/….
local request = require('dmir.client').request
local M = {}

local filetypes = { dmir = 'dmir', mlir = 'dmir', md = 'markdown', cu = 'cuda' }

local wanted = {} -- by buffer: the range to select when its text has arrived

local function client_of(buffer)
  local id = vim.b[buffer].dmir_client
  return id and vim.lsp.get_client_by_id(id) or vim.lsp.get_clients({ name = 'dmir' })[1]
end

---Goes to the source line of the kernel at the cursor, by the links of the view.
local function to_program(buffer, client)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local params = { textDocument = { uri = vim.api.nvim_buf_get_name(buffer) } }
  request(client, 'textDocument/documentLink', params, function(err, links)
    local nearest
    for _, link in ipairs(not err and links or {}) do
      if link.range.start.line <= row + 1 then
        nearest = link -- the comment above a kernel belongs to it too
      end
    end
    if not nearest then
      return vim.notify('this line came from none of the program', vim.log.levels.WARN)
    end
    local uri, line = nearest.target:match('^(.*)#L(%d+)$')
    local location = { uri = uri, range = { start = { line = line - 1, character = 0 }, ['end'] = { line = line - 1, character = 0 } } }
    vim.lsp.util.show_document(location, client.offset_encoding, { focus = true, reuse_win = true })
  end)
end

---Moves the cursor to the range that the server asked to select.
local function select(buffer)
  local range, window = wanted[buffer], vim.fn.bufwinid(buffer)
  wanted[buffer] = nil
  if range and window ~= -1 then
    local row = math.min(range.start.line + 1, vim.api.nvim_buf_line_count(buffer))
    vim.api.nvim_win_set_cursor(window, { row, 0 })
    vim.api.nvim_win_call(window, function()
      vim.cmd('normal! zt')
    end)
  end
end

---Fills a buffer with the document that it is named for.
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
  if uri:match('^dmir:/+cuda/') then
    vim.keymap.set('n', 'gd', function()
      to_program(buffer, client)
    end, { buffer = buffer, desc = 'Go to the source line of the kernel' })
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
    select(buffer)
  end)
end

---Shows a virtual document beside the current window, or in the window that shows it already.
---@param uri string
---@param client_id integer
---@param range? table range to select
function M.show(uri, client_id, range)
  local buffer = vim.fn.bufadd(uri)
  wanted[buffer] = range
  local window = vim.fn.bufwinid(buffer)
  if window ~= -1 then
    vim.api.nvim_set_current_win(window)
    select(buffer)
    return
  end
  vim.b[buffer].dmir_client = client_id
  vim.cmd('rightbelow vertical sbuffer ' .. buffer)
end

---Refreshes the buffers that show a virtual document.
---@param uri string
function M.refresh(uri)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.api.nvim_buf_get_name(buffer) == uri then
      M.fill(buffer)
    end
  end
end

return M
