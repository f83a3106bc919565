-- The versions that :DmirDiff compares with, and the history of applied fixes and refactorings.
local client_of = require('dmir.client')
local M = {}

local lists = {} -- the buffer of a history, by that of the program

local named = { 'saved', 'text', 'git:HEAD', 'git:HEAD~1', 'git:main', 'after-simplify', 'after-layout', 'after-fuse', 'after-plan' }

---Reports whether a word names a version of the file, and no function.
function M.is_version(word)
  return vim.tbl_contains(named, word) or word:match('^git:') ~= nil or word:match('^after%-') ~= nil or word:match('%.dmir$') ~= nil
end

---Completes the names of versions and of other programs.
function M.complete(lead)
  local words = vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, named)
  return vim.list_extend(words, vim.tbl_filter(function(file)
    return M.is_version(file)
  end, vim.fn.getcompletion(lead, 'file')))
end

---The first change that an entry made in each function, as text.
local function saved(entry)
  local parts = {}
  for _, gain in ipairs(entry.saved or {}) do
    local costs = {}
    for name, delta in pairs({ moved = gain.moved_bytes, time = gain.time_ns }) do
      if delta.change ~= 0 then
        costs[#costs + 1] = ('%s %s → %s (%s)'):format(name, delta.old_label, delta.new_label, delta.change_label)
      end
    end
    table.sort(costs)
    if #costs > 0 then
      parts[#parts + 1] = '@' .. gain['function'] .. ' ' .. table.concat(costs, ', ')
    end
  end
  return #parts > 0 and table.concat(parts, '; ') or 'no function costs anything else'
end

---The lines of an entry in the list.
local function lines_of(entry)
  local state = ({ applied = ' ', reverted = '✗', edited = '~' })[entry.state]
  local note = entry.state == 'reverted' and ' (reverted)' or entry.note ~= '' and (' (' .. entry.note .. ')') or ''
  return { ('%s %s  %s, %s%s'):format(state, entry.at, entry.title, entry.lines, note), '            ' .. saved(entry) }
end

---Lists what was applied to a buffer, in a split: Enter goes to an entry's place, r reverts it.
function M.show(client, buffer)
  local uri = vim.uri_from_bufnr(buffer)
  local list = lists[buffer]
  if not list or not vim.api.nvim_buf_is_valid(list) then
    list = vim.api.nvim_create_buf(false, true)
    lists[buffer] = list
    -- The number keeps programs of one name apart.
    vim.api.nvim_buf_set_name(list, ('dmir://history/%d/%s'):format(buffer, vim.fs.basename(vim.api.nvim_buf_get_name(buffer))))
    vim.bo[list].bufhidden = 'wipe'
  end
  local entries = {}
  local function entry_at_cursor()
    return entries[math.floor(vim.api.nvim_win_get_cursor(0)[1] / 2)]
  end
  local function fill()
    client_of.request(client, 'dmir/panelData', { uri = uri, kind = 'history' }, function(err, result)
      if err or not vim.api.nvim_buf_is_valid(list) then
        return err and vim.notify(err.message, vim.log.levels.ERROR)
      end
      entries = result.data.history.applied
      local text = { #entries == 0 and 'No fix or refactoring was applied since the file was opened.' or 'Applied, the last one first: Enter goes there, r reverts, q closes.' }
      for _, entry in ipairs(entries) do
        vim.list_extend(text, lines_of(entry))
      end
      local first = vim.api.nvim_buf_line_count(list) == 1
      vim.bo[list].modifiable = true
      vim.api.nvim_buf_set_lines(list, 0, -1, false, text)
      vim.bo[list].modifiable = false
      local window = vim.fn.bufwinid(list)
      if first and window ~= -1 and #text > 1 then
        vim.api.nvim_win_set_height(window, math.min(#text + 1, 15))
        vim.api.nvim_win_set_cursor(window, { 2, 0 })
      end
    end)
  end
  local function map(key, description, run)
    vim.keymap.set('n', key, run, { buffer = list, nowait = true, desc = description })
  end
  map('q', 'Close the list', '<Cmd>close<CR>')
  map('r', 'Revert the entry', function()
    local entry = entry_at_cursor()
    if entry then
      client_of.execute(client, 'dmir.revert', { uri = uri, id = entry.id }, fill)
    end
  end)
  map('<CR>', 'Go to the entry', function()
    local entry = entry_at_cursor()
    local window = vim.fn.bufwinid(buffer)
    if entry and window ~= -1 then
      vim.api.nvim_set_current_win(window)
      vim.api.nvim_win_set_cursor(window, { math.min(entry.line, vim.api.nvim_buf_line_count(buffer)), 0 })
    end
  end)
  local group = vim.api.nvim_create_augroup('dmir.history.' .. list, {})
  vim.api.nvim_create_autocmd({ 'TextChanged', 'InsertLeave' }, {
    group = group,
    buffer = buffer,
    callback = fill,
  })
  vim.api.nvim_create_autocmd('BufWipeout', {
    group = group,
    buffer = list,
    callback = function()
      lists[buffer] = nil
      vim.api.nvim_del_augroup_by_id(group)
    end,
  })
  fill()
  if vim.fn.bufwinid(list) == -1 then
    vim.cmd('botright sbuffer ' .. list)
    vim.wo.wrap = false
    vim.wo.number = false
  else
    vim.api.nvim_set_current_win(vim.fn.bufwinid(list))
  end
end

return M
