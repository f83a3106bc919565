-- Requests and notifications in Neovim 0.10 and newer: in 0.11 the client's functions became methods.
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

---Executes a command of the server with one argument; shows an error, passes a result to the callback.
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
