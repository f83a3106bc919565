-- Talking to the language server in Neovim 0.10 and newer: 0.11 made the client's functions methods.
local M = {}

---Sends a request.
function M.request(client, method, params, handler, buffer)
  if vim.fn.has('nvim-0.11') == 1 then
    return client:request(method, params, handler, buffer)
  end
  return client.request(method, params, handler, buffer)
end

---Sends a notification.
function M.notify(client, method, params)
  if vim.fn.has('nvim-0.11') == 1 then
    return client:notify(method, params)
  end
  return client.notify(method, params)
end

---Has the server execute a command with one argument; an error is shown, an answer handed on.
function M.execute(client, command, argument, done)
  local params = { command = command, arguments = argument and { argument } or {} }
  M.request(client, 'workspace/executeCommand', params, function(err, result)
    if err then
      vim.notify(err.message, vim.log.levels.ERROR)
    elseif done then
      done(result)
    end
  end)
end

return M
