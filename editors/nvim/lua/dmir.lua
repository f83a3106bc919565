-- What Neovim adds to the language server: a place to show the table of costs, and commands.
local M = {}

---Sends a request; Neovim 0.11 made the client's functions methods.
local function request(client, method, params, handler, buffer)
  if vim.fn.has('nvim-0.11') == 1 then
    return client:request(method, params, handler, buffer)
  end
  return client.request(method, params, handler, buffer)
end

local function notify(client, method, params)
  if vim.fn.has('nvim-0.11') == 1 then
    return client:notify(method, params)
  end
  return client.notify(method, params)
end

local function execute(client, command, argument, done)
  local params = { command = command, arguments = argument and { argument } or {} }
  request(client, 'workspace/executeCommand', params, function(err, result)
    if err then
      vim.notify(err.message, vim.log.levels.ERROR)
    elseif done then
      done(result)
    end
  end)
end

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

---Runs a function; the server says how long it took, and hints show it.
---@param client vim.lsp.Client
---@param argument { uri: string, func: string }
function M.run(client, argument)
  execute(client, 'dmir.run', argument, function(result)
    if result and result.ok == false then
      vim.notify(result.message, vim.log.levels.ERROR)
    end
  end)
end

---Calls back with the arguments of the Run lens of the named function, or of the one the cursor is in.
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

---Chooses the machine that times are computed for, for as long as Neovim runs.
local function select_target(client, name)
  local function set(target)
    client.settings = vim.tbl_deep_extend('force', client.settings or {}, { dmir = { target = target } })
    notify(client, 'workspace/didChangeConfiguration', { settings = client.settings })
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

---Makes the commands of a buffer.
function M.attach(client, buffer)
  local function command(name, description, run)
    vim.api.nvim_buf_create_user_command(buffer, name, function(call)
      run(call.fargs[1])
    end, { nargs = '?', desc = description })
  end
  command('DmirRun', 'Run the named function, or the one at the cursor', function(name)
    with_function(client, buffer, name, function(argument)
      M.run(client, argument)
    end)
  end)
  command('DmirCost', 'Show the costs of the named function, or of the file', function(name)
    M.show_cost(client, { uri = vim.uri_from_bufnr(buffer), func = name and (name:gsub('^@', '')) or nil })
  end)
  command('DmirTarget', 'Choose the machine that times are computed for', function(name)
    select_target(client, name)
  end)
  if vim.lsp.inlay_hint and client.server_capabilities.inlayHintProvider then
    vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
  end
end

---Starts the server for a buffer where vim.lsp.enable does not exist (Neovim 0.10).
---@param buffer integer
---@param overrides? table parts of lsp/dmir.lua to change
function M.start(buffer, overrides)
  local file = vim.api.nvim_get_runtime_file('lsp/dmir.lua', false)[1]
  local config = vim.tbl_deep_extend('force', dofile(file), { name = 'dmir' }, overrides or {})
  config.root_dir = vim.fs.root(buffer, config.root_markers) or vim.fs.dirname(vim.api.nvim_buf_get_name(buffer))
  return vim.lsp.start(config, { bufnr = buffer })
end

return M
