-- Commands of the language server, and a window for the table of costs.
local client_of = require('dmir.client')
local column = require('dmir.column')
local heat = require('dmir.heat')
local history = require('dmir.history')
local execute, notify, request = client_of.execute, client_of.notify, client_of.request
local M = {}

---Shows the table of costs of a file or a function in a split.
---@param client vim.lsp.Client
---@param argument { uri: string, func?: string }
function M.show_cost(client, argument)
  execute(client, 'dmir.cost', argument, function(cost)
    local buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(vim.trim(cost.text), '\n'))
    vim.bo[buffer].modifiable = false
    vim.bo[buffer].bufhidden = 'wipe'
    pcall(vim.api.nvim_buf_set_name, buffer, 'dmir://' .. cost.title)
    vim.cmd('botright sbuffer ' .. buffer)
    vim.wo.wrap = false
    vim.wo.number = false
  end)
end

---Runs a function; the server reports its time, and hints show it.
---@param client vim.lsp.Client
---@param argument { uri: string, func: string }
function M.run(client, argument)
  execute(client, 'dmir.run', argument, function(result)
    if result and result.ok == false then
      vim.notify(result.message, vim.log.levels.ERROR)
    end
  end)
end

---Compiles, profiles or plans a function; the server reports the result.
---@param client vim.lsp.Client
---@param name 'dmir.compile'|'dmir.profile'|'dmir.plan'
---@param argument { uri: string, func: string, devices?: integer }
function M.work(client, name, argument)
  execute(client, name, argument, function(result)
    if result and result.ok == false then
      vim.notify(result.message, vim.log.levels.ERROR)
    end
  end)
end

-- Views of the whole program, and of the function at the cursor, which the server compiles for them.
local views = { 'generic', 'expanded', 'fixed', 'cost' }
-- Views of plans that were made for the function at the cursor.
local planned = { 'plans', 'planned-1', 'planned-2', 'planned-3' }
local compiled = { 'after-inline', 'after-bind', 'after-attention', 'after-gradient', 'after-simplify', 'after-layout', 'after-fuse', 'after-plan', 'cuda', 'ptx' }

---Calls back with the arguments of the Run lens of the named function, or of the one at the cursor.
local function with_function(client, buffer, name, done)
  local params = { textDocument = vim.lsp.util.make_text_document_params(buffer) }
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  request(client, 'textDocument/codeLens', params, function(err, lenses)
    if err then
      return vim.notify(err.message, vim.log.levels.ERROR)
    end
    local found
    for _, lens in ipairs(lenses or {}) do
      if lens.command and lens.command.command == 'dmir.run' then
        local argument = lens.command.arguments[1]
        if name then
          found = argument.func:gsub('^@', '') == name:gsub('^@', '') and argument or found
        elseif lens.range.start.line <= row or not found then
          found = argument
        end
      end
    end
    if found then
      done(found)
    else
      vim.notify(name and ('no function ' .. name) or 'this file has no function to run', vim.log.levels.WARN)
    end
  end, buffer)
end

---Selects the machine that times are computed for, until Neovim exits.
local function select_target(client, name)
  local function set(target)
    client.settings = vim.tbl_deep_extend('force', client.settings or {}, { dmir = { target = target } })
    notify(client, 'workspace/didChangeConfiguration', { settings = client.settings })
    for buffer in pairs(client.attached_buffers) do
      heat.refresh(client, buffer)
    end
  end
  if name then
    return set(name)
  end
  execute(client, 'dmir.targets', nil, function(targets)
    local options = {
      prompt = 'Machine that times are computed for',
      format_item = function(target)
        return target.name .. '  ' .. target.title
      end,
    }
    vim.ui.select(targets, options, function(target)
      if target then
        set(target.name)
      end
    end)
  end)
end

---Opens a panel of the function at the cursor, or of the named one, in the browser; the page follows the text and the cursor.
---@param base? string the old version of a comparison
local function show_panel(client, buffer, kind, name, base)
  with_function(client, buffer, name, function(argument)
    execute(client, 'dmir.panel', { uri = argument.uri, kind = kind, ['function'] = argument.func, base = base }, function()
      if vim.b[buffer].dmir_panel then
        return
      end
      vim.b[buffer].dmir_panel = true
      vim.api.nvim_create_autocmd('CursorHold', {
        buffer = buffer,
        callback = function()
          if vim.lsp.get_client_by_id(client.id) then
            notify(client, 'dmir/select', {
              textDocument = vim.lsp.util.make_text_document_params(buffer),
              position = { line = vim.api.nvim_win_get_cursor(0)[1] - 1, character = 0 },
            })
          end
        end,
      })
    end)
  end)
end

---Shows a view of the named function, or of the one at the cursor, with the kernel of the cursor's line selected.
local function show_compiled(client, buffer, view, name)
  local line = not name and vim.api.nvim_win_get_cursor(0)[1] - 1 or nil
  with_function(client, buffer, name, function(argument)
    execute(client, 'dmir.view', { uri = argument.uri, view = view, func = argument.func, line = line })
  end)
end

---Shows the lenses above the functions of a buffer.
local function show_lenses(buffer)
  if vim.lsp.codelens.enable then
    return vim.lsp.codelens.enable(true, { bufnr = buffer })
  end
  local function refresh()
    vim.lsp.codelens.refresh({ bufnr = buffer })
  end
  local group = vim.api.nvim_create_augroup('dmir.lenses.' .. buffer, {})
  vim.api.nvim_create_autocmd({ 'BufEnter', 'TextChanged', 'InsertLeave' }, { group = group, buffer = buffer, callback = refresh })
  vim.api.nvim_create_autocmd('BufWipeout', {
    group = group,
    buffer = buffer,
    callback = function()
      vim.api.nvim_del_augroup_by_id(group)
    end,
  })
  refresh()
end

---Folds by the server's ranges, all open at first, in windows that fold by hand. Needs Neovim 0.11.
local function use_folds(buffer)
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    local options = vim.wo[window][0]
    if options.foldmethod == 'manual' then
      options.foldlevel = 99
      options.foldmethod = 'expr'
      options.foldexpr = 'v:lua.vim.lsp.foldexpr()'
      options.foldtext = "v:lua.require'dmir.column'.foldtext()"
    end
  end
end

---Closes the folds of signatures and types in the current window. Their kind is none that Neovim closes by itself.
local function fold_types(client, buffer)
  local window = vim.api.nvim_get_current_win()
  local params = { textDocument = vim.lsp.util.make_text_document_params(buffer) }
  request(client, 'textDocument/foldingRange', params, function(err, ranges)
    if err then
      return vim.notify(err.message, vim.log.levels.ERROR)
    end
    if not vim.api.nvim_win_is_valid(window) or vim.api.nvim_win_get_buf(window) ~= buffer then
      return
    end
    vim.api.nvim_win_call(window, function()
      for _, range in vim.iter(ranges or {}):rev():enumerate() do
        local first = range.startLine + 1
        if range.kind == 'types' and vim.fn.foldlevel(first) > 0 and vim.fn.foldclosed(first) == -1 then
          vim.cmd(first .. 'foldclose')
          -- Right after an edit Neovim may not have this fold yet: what was closed is one around it.
          if vim.fn.foldclosed(first) ~= first then
            vim.cmd(first .. 'foldopen')
          end
        end
      end
    end)
    column.refresh() -- other lines are on the screen now
  end, buffer)
end

---Offers what the last lens of a row holds, and does what is chosen.
---@param client vim.lsp.Client
---@param argument { func: string, items: table[] }
function M.more(client, argument, context)
  local options = {
    prompt = '@' .. argument.func,
    format_item = function(item)
      return item.title
    end,
  }
  vim.ui.select(argument.items, options, function(item)
    local own = item and (client.commands[item.command] or vim.lsp.commands[item.command])
    if own then
      own(item, context)
    elseif item then
      execute(client, item.command, item.arguments[1])
    end
  end)
end

---Shows the costs of lines and the lenses as the settings say.
local function show_costs(client, buffer)
  local settings = vim.tbl_get(client.settings or client.config.settings or {}, 'dmir') or {}
  local position = vim.tbl_get(settings, 'hints', 'position') or 'left'
  if position == 'left' or position == 'right' then
    column.on(client, buffer, position)
  elseif client.server_capabilities.inlayHintProvider then
    vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
  end
  if vim.tbl_get(settings, 'lenses', 'enabled') ~= false then
    show_lenses(buffer)
  end
end

---Defines the commands of a buffer.
function M.attach(client, buffer)
  local function command(name, description, run, words)
    vim.api.nvim_buf_create_user_command(buffer, name, function(call)
      local word = call.fargs[1]
      if words and not vim.tbl_contains(words, word) then
        return vim.notify(name .. ' takes one of ' .. table.concat(words, ', '), vim.log.levels.ERROR)
      end
      run(word)
    end, {
      nargs = words and 1 or '?',
      desc = description,
      complete = words and function(lead)
        return vim.tbl_filter(function(word)
          return vim.startswith(word, lead)
        end, words)
      end,
    })
  end
  local uri = vim.uri_from_bufnr(buffer)
  command('DmirRun', 'Run the named function, or the one at the cursor', function(name)
    with_function(client, buffer, name, function(argument)
      M.run(client, argument)
    end)
  end)
  command('DmirCost', 'Show the costs of the named function, or of the file', function(name)
    M.show_cost(client, { uri = uri, func = name and (name:gsub('^@', '')) or nil })
  end)
  command('DmirTarget', 'Choose the machine that times are computed for', function(name)
    select_target(client, name)
  end)
  for name, kind in pairs({ Graph = 'graph', Roofline = 'roofline', Memory = 'memory', Mesh = 'mesh', Timeline = 'timeline', Plans = 'plans' }) do
    command('Dmir' .. name, 'Open the ' .. kind .. ' panel of the named function, or of the one at the cursor', function(func)
      show_panel(client, buffer, kind, func)
    end)
  end
  vim.api.nvim_buf_create_user_command(buffer, 'DmirDiff', function(call)
    local func, base = call.fargs[1], call.fargs[2]
    if func and not base and history.is_version(func) then
      func, base = nil, func
    end
    show_panel(client, buffer, 'diff', func, base)
  end, { nargs = '*', desc = 'Compare the function with the saved file, or with a version: git:HEAD, a file, after-fuse', complete = history.complete })
  vim.api.nvim_buf_create_user_command(buffer, 'DmirHistory', function()
    history.show(client, buffer)
  end, { desc = 'List the fixes and refactorings that were applied, and revert one' })
  for name, deed in pairs({ Compile = 'dmir.compile', Profile = 'dmir.profile' }) do
    command('Dmir' .. name, name .. ' the named function, or the one at the cursor', function(func)
      with_function(client, buffer, func, function(argument)
        M.work(client, deed, argument)
      end)
    end)
  end
  command('DmirPlan', 'Plan the training step at the cursor for its mesh, or for a number of devices', function(devices)
    if devices and not devices:match('^%d+$') then
      return vim.notify(devices .. ' is no number of devices', vim.log.levels.ERROR)
    end
    with_function(client, buffer, nil, function(argument)
      M.work(client, 'dmir.plan', { uri = argument.uri, func = argument.func, devices = tonumber(devices) })
    end)
  end)
  command('DmirApplyPlan', 'Write the best plan of the step at the cursor, or the one with a number, into the text', function(number)
    with_function(client, buffer, nil, function(argument)
      execute(client, 'dmir.applyPlan', { uri = argument.uri, func = argument.func, plan = tonumber(number) })
    end)
  end)
  for name, view in pairs({ Cuda = 'cuda', Ptx = 'ptx' }) do
    command('Dmir' .. name, 'Show the kernels of the named function, or of the one at the cursor', function(func)
      show_compiled(client, buffer, view, func)
    end)
  end
  command('DmirView', 'Show the program at another level, beside it', function(view)
    if vim.tbl_contains(compiled, view) or vim.tbl_contains(planned, view) then
      return show_compiled(client, buffer, view)
    end
    execute(client, 'dmir.view', { uri = uri, view = view })
  end, vim.list_extend(vim.list_extend(vim.list_slice(views), compiled), planned))
  command('DmirToggle', 'Switch hints or lint on and off', function(setting)
    execute(client, 'dmir.toggle', { setting = setting })
  end, { 'hints', 'lint' })
  command('DmirHeat', 'Colour lines by the time, bytes or waste they take', function(by)
    if by == 'off' then
      heat.off(buffer)
    else
      heat.on(client, buffer, by)
    end
  end, { 'time', 'bytes', 'waste', 'off' })
  local settings = vim.tbl_get(client.settings or client.config.settings or {}, 'dmir') or {}
  local by = settings.heat
  if by and by ~= '' and by ~= 'off' then
    heat.on(client, buffer, by)
  end
  if vim.lsp.foldexpr then
    use_folds(buffer)
    command('DmirFold', 'Fold the signatures and types that take several lines', function()
      fold_types(client, buffer)
    end)
  end
  show_costs(client, buffer)
end

---Defines the command of a Python buffer, and shows the costs of its trace.
function M.attach_python(client, buffer)
  vim.api.nvim_buf_create_user_command(buffer, 'DmirTraceAgain', function()
    execute(client, 'dmir.traceAgain', { uri = vim.uri_from_bufnr(buffer) })
  end, { desc = 'Run the command of the trace beside this file' })
  show_costs(client, buffer)
end

---Starts the server for a buffer if vim.lsp.enable does not exist (Neovim 0.10). For a Python buffer it does so if there are
---traces around it.
---@param buffer integer
---@param overrides? table parts of lsp/dmir.lua, or lsp/dmir_python.lua, to change
function M.start(buffer, overrides)
  if vim.bo[buffer].buftype ~= '' then
    return -- a virtual document of the server
  end
  local name = vim.bo[buffer].filetype == 'python' and 'dmir_python' or 'dmir'
  local file = vim.api.nvim_get_runtime_file('lsp/' .. name .. '.lua', false)[1]
  local config = vim.tbl_deep_extend('force', dofile(file), { name = name }, overrides or {})
  config.root_dir = vim.fs.root(buffer, config.root_markers)
  if not config.root_dir and config.workspace_required then
    return
  end
  config.root_dir = config.root_dir or vim.fs.dirname(vim.api.nvim_buf_get_name(buffer))
  return vim.lsp.start(config, { bufnr = buffer })
end

return M
