-- The costs of lines as virtual text: a column at the left of the code, or at the right edge of the window.
local client_of = require('dmir.client')
local heat = require('dmir.heat')
local M = {}

local namespace = vim.api.nvim_create_namespace('dmir.column')
local pause = 150 -- milliseconds after an edit
local margin = 200 -- lines drawn above and below each part that is on the screen
local blank = (' '):rep(14)
local shown = {} -- by buffer: { client, position, timer, group, some, rows }

local function define_colours()
  heat.define_colours()
  vim.api.nvim_set_hl(0, 'DmirHint', { default = true, link = 'LspInlayHint' })
  vim.api.nvim_set_hl(0, 'DmirHintStale', { default = true, link = 'NonText' }) -- of the text before an error
  vim.api.nvim_set_hl(0, 'DmirHintMeasured', { default = true, link = 'DiagnosticInfo' })
end

---Adds the rows that the current window shows to a list of { first, last }, apart where a closed fold is between them.
local function add_shown(parts)
  local line, bottom = vim.fn.line('w0'), vim.fn.line('w$')
  while line <= bottom do
    local folded = vim.fn.foldclosedend(line)
    if folded == -1 then
      parts[#parts + 1] = { line - 1, line - 1 }
      line = line + 1
    else
      -- The first line of a closed fold has the column.
      local head = math.max(vim.fn.foldclosed(line), 1)
      parts[#parts + 1] = { head - 1, head - 1 }
      line = folded + 1
    end
  end
end

---The zero-based rows around those that windows show, as { first, last } in order and apart; none if no window has the buffer.
local function rows_of(buffer)
  local parts, last_row = {}, vim.api.nvim_buf_line_count(buffer) - 1
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    vim.api.nvim_win_call(window, function()
      add_shown(parts)
    end)
  end
  table.sort(parts, function(a, b)
    return a[1] < b[1]
  end)
  local merged = {}
  for _, part in ipairs(parts) do
    local first, last, previous = math.max(part[1] - margin, 0), math.min(part[2] + margin, last_row), merged[#merged]
    if previous and first <= previous[2] + 1 then
      previous[2] = math.max(previous[2], last)
    else
      merged[#merged + 1] = { first, last }
    end
  end
  return merged
end

---Reports whether an event is of windows, or of one, that show a buffer.
local function concerns(event, buffer)
  local windows = vim.v.event.windows or vim.tbl_keys(vim.v.event) -- of WinResized, of WinScrolled
  return event.event == 'VimResized' or vim.iter({ windows, event.match }):flatten():any(function(window)
    window = tonumber(window)
    return window and vim.api.nvim_win_is_valid(window) and vim.api.nvim_win_get_buf(window) == buffer
  end)
end

---The characters that the narrowest window of a buffer has for text.
local function room_of(buffer)
  local room = math.huge
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    local info = vim.fn.getwininfo(window)[1]
    room = math.min(room, info.width - info.textoff)
  end
  return room
end

local function put(buffer, row, text, groups, position)
  local mark = { virt_text = { { text, groups } }, hl_mode = 'combine', right_gravity = false, invalidate = true, undo_restore = false }
  mark.virt_text_pos = position == 'left' and 'inline' or 'right_align'
  vim.api.nvim_buf_set_extmark(buffer, namespace, row, 0, mark)
end

---Gives lines that have no column a blank one, so that the code stays aligned until the server answers.
local function pad(buffer)
  local state = shown[buffer]
  if not (state.some and state.position == 'left') then
    return
  end
  for _, part in ipairs(rows_of(buffer)) do
    local first, last = part[1], part[2]
    local has = {}
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, namespace, { first, 0 }, { last, -1 }, {})) do
      if has[mark[2]] or mark[3] > 0 then -- of lines that were joined
        vim.api.nvim_buf_del_extmark(buffer, namespace, mark[1])
      else
        has[mark[2]] = true
      end
    end
    for row = first, last do
      if not has[row] then
        put(buffer, row, blank, {}, 'left')
      end
    end
  end
end

local function draw(buffer, hints)
  local state = shown[buffer]
  local position, room, tinted = state.position, room_of(buffer), not heat.shown(buffer)
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  state.some = #hints > 0
  for _, hint in ipairs(hints) do
    local line = vim.api.nvim_buf_get_lines(buffer, hint.line, hint.line + 1, false)[1]
    -- At the right edge a figure must not cover the code.
    if line and (position == 'left' or vim.fn.strdisplaywidth(line) + #blank <= room) then
      local groups = { hint.stale and 'DmirHintStale' or hint.measured and 'DmirHintMeasured' or 'DmirHint' }
      if tinted and hint.level then
        table.insert(groups, 1, 'DmirHeat' .. hint.level)
      end
      if position == 'left' then
        put(buffer, hint.line, ' ' .. hint.label .. ' ', groups, position)
      else
        put(buffer, hint.line, ' ' .. hint.label, groups, position)
      end
    end
  end
  pad(buffer)
end

local function ask(buffer)
  local state = shown[buffer]
  local client = state and vim.lsp.get_client_by_id(state.client)
  if not client or not vim.api.nvim_buf_is_loaded(buffer) then
    return
  end
  state.rows = rows_of(buffer)
  if #state.rows == 0 then
    return
  end
  local ranges = vim.tbl_map(function(part)
    return { start = { line = part[1], character = 0 }, ['end'] = { line = part[2], character = 0 } }
  end, state.rows)
  local tick = vim.api.nvim_buf_get_changedtick(buffer)
  local params = {
    textDocument = vim.lsp.util.make_text_document_params(buffer),
    by = 'time',
    ranges = ranges,
  }
  client_of.request(client, 'dmir/hints', params, function(err, hints)
    local current = shown[buffer] == state and vim.api.nvim_buf_is_loaded(buffer)
    if current and not err and type(hints) == 'table' and vim.api.nvim_buf_get_changedtick(buffer) == tick then
      draw(buffer, hints)
    end
  end, buffer)
end

---Removes the column.
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

---Shows the column of a buffer and updates it.
---@param position 'left'|'right'
function M.on(client, buffer, position)
  M.off(buffer)
  define_colours()
  local state = { client = client.id, position = position, timer = assert(vim.uv.new_timer()), some = false }
  state.group = vim.api.nvim_create_augroup('dmir.column.' .. buffer, {})
  shown[buffer] = state
  local function on(events, run, where)
    vim.api.nvim_create_autocmd(events, vim.tbl_extend('force', { group = state.group, callback = run }, where or { buffer = buffer }))
  end
  local function later()
    if shown[buffer] == state then
      pad(buffer)
      state.timer:start(pause, 0, vim.schedule_wrap(function()
        ask(buffer)
      end))
    end
  end
  on({ 'TextChanged', 'TextChangedI', 'DiagnosticChanged', 'BufWinEnter' }, later)
  on({ 'WinScrolled', 'VimResized', 'WinResized' }, function(event)
    if concerns(event, buffer) then
      later()
    end
  end, { pattern = '*' })
  -- There is no event for folds.
  on({ 'CursorMoved', 'CursorHold' }, function()
    if not vim.deep_equal(rows_of(buffer), state.rows) then
      later()
    end
  end)
  on('ColorScheme', define_colours, { pattern = '*' })
  on({ 'BufUnload', 'LspDetach' }, function(event)
    if event.event == 'BufUnload' or event.data.client_id == client.id then
      M.off(buffer)
    end
  end)
  ask(buffer)
end

---Requests the costs again, as after a run.
function M.refresh()
  for buffer in pairs(shown) do
    ask(buffer)
  end
end

---The text of a closed fold: that of the server behind the column of its first line, which a fold hides.
function M.foldtext()
  local state, row = shown[vim.api.nvim_get_current_buf()], vim.v.foldstart - 1
  local text = { vim.lsp.foldtext(), 'Folded' }
  if not (state and state.position == 'left' and state.some) then
    return { text }
  end
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, { row, 0 }, { row, -1 }, { details = true })) do
    return { mark[4].virt_text[1], text }
  end
  return { { blank }, text }
end

---The text of the column by zero-based row, for tests.
function M.labels(buffer)
  local labels = {}
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, namespace, 0, -1, { details = true })) do
    local text = vim.trim(mark[4].virt_text[1][1])
    labels[mark[2]] = text ~= '' and text or nil
  end
  return labels
end

return M
