-- Programs in StableHLO show their costs too; other MLIR files are none of dmir's.
local function mlir(_, buffer)
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, 1000, false), '\n')
  local own = text:find('%f[%w]dm%.%l') ~= nil
  local foreign = text:find('%f[%w]stablehlo%.%l') or text:find('%f[%w]chlo%.%l') or text:find('%f[%w]mhlo%.[%w_]+[" ]*[%%(]')
  return foreign and not own and 'dmir' or 'mlir'
end

vim.filetype.add({ extension = { dmir = 'dmir', mlir = mlir } })
