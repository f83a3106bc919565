-- Lines coloured by their share of the function's time, bytes or waste.
local client_request = require('dmir.client').request
local M = {}

local namespace = vim.api.nvim_create_namespace('dmir.heat')
local pause = 200 -- milliseconds after an edit
local shown = {} -- by buffer: { by, timer, texts = { [row] = text } }

---Blends the hottest colour with the background in proportion to a line's heat.
function M.define_colours()
  local dark = vim.o.background == 'dark'
  local normal = vim.api.nvim_get_hl(0, { name = 'Normal', link = false }).bg or (dark and 0x101010 or 0xffffff)
  local hot = dark and 0xd03010 or 0xff5030
  for level = 0, 9 do
    local share, colour = level / 9 * 0.6, 0
    for shift = 16, 0, -8 do
      local from, to = bit.band(bit.rshift(normal, shift), 255), bit.band(bit.rshift(hot, shift), 255)
      colour = colour + bit.lshift(math.floor(from + (to - from) * share + 0.5), shift)
    end
    vim.api.nvim_set_hl(0, 'DmirHeat' .. level, {
      default = true,
      bg = colour,
      ctermbg = level >= 3 and (dark and ({ 52, 52, 52, 88, 88, 124, 124 })[level - 2] or ({ 224, 224, 224, 217, 217, 210, 210 })[level - 2]) or nil,
    })
  end
end

local function draw(buffer, heats)
  local state = shown[buffer]
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  state.texts = {}
  local rows = vim.api.nvim_buf_line_count(buffer)
  for _, heat in ipairs(heats) do
    local row = heat.range.start.line
    if row < rows then
      vim.api.nvim_buf_set_extmark(buffer, namespace, row, 0, { line_hl_group = 'DmirHeat' .. heat.level, priority = 50 })
      state.texts[row] = heat.text
    end
  end
end

local function refresh(client, buffer)
  local state = shown[buffer]
  if not state or not vim.api.nvim_buf_is_loaded(buffer) then
    return
  end
  local tick = vim.api.nvim_buf_get_changedtick(buffer)
  local params = { textDocument = vim.lsp.util.make_text_document_params(buffer), by = state.by }
  client_request(client, 'dmir/heat', params, function(err, heats)
    if shown[buffer] ~= state or not vim.api.nvim_buf_is_loaded(buffer) then
      return
    end
    if err then
      vim.notify(err.message, vim.log.levels.ERROR)
    elseif vim.api.nvim_buf_get_changedtick(buffer) == tick then
      draw(buffer, heats or {})
    end
  end, buffer)
end

---Removes the colours.
function M.off(buffer)
  local state = shown[buffer]
  if not state then
    return
  end
  shown[buffer] = nil
  state.timer:stop()
  state.timer:close()
  vim.api.nvim_del_augroup_by_id(state.group)
  if vim.api.nvim_buf_is_loaded(buffer) then
    vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  end
end

---Colours the lines of a buffer and updates them after edits.
---@param by 'time'|'bytes'|'waste'
function M.on(client, buffer, by)
  M.off(buffer)
  M.define_colours()
  local state = { by = by, timer = assert(vim.uv.new_timer()), texts = {} }
  state.group = vim.api.nvim_create_augroup('dmir.heat.' .. buffer, {})
  shown[buffer] = state
  local function later()
    state.timer:start(pause, 0, vim.schedule_wrap(function()
      refresh(client, buffer)
    end))
  end
  local function on(events, run, where)
    vim.api.nvim_create_autocmd(events, vim.tbl_extend('force', { group = state.group, callback = run }, where or { buffer = buffer }))
  end
  on({ 'TextChanged', 'TextChangedI', 'DiagnosticChanged' }, later)
  on('ColorScheme', M.define_colours, { pattern = '*' })
  on({ 'BufUnload', 'LspDetach' }, function(event)
    if event.event == 'BufUnload' or event.data.client_id == client.id then
      M.off(buffer)
    end
  end)
  on('CursorHold', function()
    local text = state.texts[vim.api.nvim_win_get_cursor(0)[1] - 1]
    if text then
      vim.api.nvim_echo({ { text } }, false, {})
    end
  end)
  refresh(client, buffer)
end

---Reports whether a buffer is coloured.
function M.shown(buffer)
  return shown[buffer] ~= nil
end

---The text of a line's heat, nil if it has none.
function M.text(buffer, row)
  return shown[buffer] and shown[buffer].texts[row]
end

---Requests the heat again, as after a change of the target machine.
function M.refresh(client, buffer)
  refresh(client, buffer)
end

return M
