-- Tests of the Neovim configuration with the real server; scripts/test-nvim.sh runs them in each version of Neovim.
-- Neovim exits with status 1 if one fails.
local workspace = vim.env.DMIR_WORKSPACE
-- Milliseconds: a time-out that a loaded machine does not reach.
local patience = 90000

local failures = 0
local function it(name, test)
  local ok, err = xpcall(test, debug.traceback)
  print((ok and '  ok   ' or '  FAIL ') .. name .. (ok and '' or '\n' .. err) .. '\n')
  failures = failures + (ok and 0 or 1)
end

---Waits for a true answer and returns it.
local function eventually(what, ask)
  local answer
  local came = vim.wait(patience, function()
    answer = ask()
    return answer
  end, 50)
  assert(came, what .. ' never came')
  return answer
end

local function get_client(buffer)
  return vim.lsp.get_clients({ bufnr = buffer, name = 'dmir' })[1]
end

---Opens a file of the workspace and waits for the server.
local function open(name)
  vim.cmd.edit({ args = { workspace .. '/' .. name }, bang = true })
  local buffer = vim.api.nvim_get_current_buf()
  eventually('the server', function()
    local client = get_client(buffer)
    return client and client.initialized
  end)
  return buffer
end

local function lines(buffer)
  return vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
end

---Zero-based row and column of the first place where the text stands.
local function find(buffer, text)
  for row, line in ipairs(lines(buffer)) do
    local column = line:find(text, 1, true)
    if column then
      return row - 1, column - 1
    end
  end
  error(text .. ' is not in the file')
end

local function cursor_on(buffer, text)
  local row, column = find(buffer, text)
  vim.api.nvim_win_set_cursor(0, { row + 1, column + 1 })
end

local function request(buffer, method, params)
  params = vim.tbl_extend('keep', params or {}, { textDocument = { uri = vim.uri_from_bufnr(buffer) } })
  local answers = assert(vim.lsp.buf_request_sync(buffer, method, params, patience))
  for _, answer in pairs(answers) do
    assert(not answer.err, vim.inspect(answer.err))
    return answer.result
  end
end

local function position(buffer, text, inside)
  local row, column = find(buffer, text)
  return { position = { line = row, character = column + (inside or 1) } }
end

local function findings(buffer)
  return vim.tbl_filter(function(d)
    return tostring(d.code):match('^DM%d+$') and d.severity ~= vim.diagnostic.severity.ERROR
  end, vim.diagnostic.get(buffer))
end

local function errors(buffer)
  return vim.diagnostic.get(buffer, { severity = vim.diagnostic.severity.ERROR })
end

---The costs of the lines of a buffer, by zero-based row.
local function hint_labels(buffer)
  return require('dmir.column').labels(buffer)
end

local function hint_text(buffer)
  return table.concat(vim.tbl_values(hint_labels(buffer)), '\n')
end

local function undo_edits()
  vim.cmd.edit({ bang = true })
end

---Collects what is shown to the person while the test runs.
local function messages_of(test)
  local shown, notify, handler = {}, vim.notify, vim.lsp.handlers['window/showMessage']
  vim.notify = function(text)
    shown[#shown + 1] = text
  end
  vim.lsp.handlers['window/showMessage'] = function(_, result)
    shown[#shown + 1] = result.message
    return result
  end
  local ok, err = pcall(test, shown)
  vim.notify, vim.lsp.handlers['window/showMessage'] = notify, handler
  assert(ok, err)
end

it('detects the file type', function()
  local buffer = open('ffn.dmir')
  assert(vim.bo[buffer].filetype == 'dmir')
  assert(vim.bo[buffer].commentstring == '// %s')
end)

it('shows the costs of a program in StableHLO on its own lines', function()
  local buffer = open('jax.mlir')
  assert(vim.bo[buffer].filetype == 'dmir')
  for _, op in ipairs({ 'stablehlo.dot_general', 'stablehlo.add', 'stablehlo.tanh' }) do
    local row = find(buffer, op)
    eventually('the cost of ' .. op, function()
      return hint_labels(buffer)[row]
    end)
  end
  assert(#vim.diagnostic.get(buffer) == 0)
  vim.cmd.edit(workspace .. '/other.mlir')
  assert(vim.bo.filetype == 'mlir')
end)

it('reports wasted movement', function()
  local buffer = open('ffn.dmir')
  local found = eventually('a finding', function()
    local all = findings(buffer)
    return #all > 0 and all
  end)
  assert(found[1].source == 'dmir', vim.inspect(found[1]))
  assert(#errors(buffer) == 0)
end)

it('shows the cost of each op as a hint', function()
  local buffer = open('ffn.dmir')
  for _, op in ipairs({ 'dm.einsum', 'dm.add', 'dm.relu', 'dm.kernel' }) do
    local row = find(buffer, op)
    local label = eventually('the cost of ' .. op, function()
      return hint_labels(buffer)[row]
    end)
    assert(label:match('^%d[%d.]*[nµm]+s +%d[%d.]*[kMG]?B$'), label)
  end
end)

---The ranges of the requests for the column while a test runs, each as "first-last first-last".
local function column_requests(test)
  local client_of = require('dmir.client')
  local request, asked = client_of.request, {}
  client_of.request = function(client, method, params, ...)
    if method == 'dmir/hints' then
      asked[#asked + 1] = table.concat(vim.tbl_map(function(range)
        return range.start.line .. '-' .. range['end'].line
      end, params.ranges), ' ')
    end
    return request(client, method, params, ...)
  end
  local ok, err = pcall(test, asked)
  client_of.request = request
  assert(ok, err)
end

---Opens a program of many lines, in a window of its own.
local function open_long()
  vim.cmd('silent only')
  local text = {}
  for n = 0, 499 do
    vim.list_extend(text, { ('func.func @f%d(%%x: tensor<64x64xf32>) -> tensor<64x64xf32> {'):format(n), '  %y = dm.exp %x : tensor<64x64xf32>', '  return %y : tensor<64x64xf32>', '}', '' })
  end
  vim.fn.writefile(text, workspace .. '/long.dmir')
  local buffer = open('long.dmir')
  eventually('costs of the first lines', function()
    return hint_labels(buffer)[1]
  end)
  return buffer
end

it('requests the costs of the lines that each window shows', function()
  local buffer = open_long()
  local top = vim.api.nvim_get_current_win()
  vim.cmd('split')
  vim.cmd('normal! G')
  column_requests(function(asked)
    vim.api.nvim_exec_autocmds('WinScrolled', { pattern = tostring(vim.api.nvim_get_current_win()) })
    eventually('the costs of both ends', function()
      local labels = hint_labels(buffer)
      return #asked > 0 and labels[1] and labels[2496] and not labels[1251]
    end)
    local first, last = asked[1]:match('^0%-(%d+) (%d+)%-2499$')
    assert(first and tonumber(first) < 400 and tonumber(last) > 2100, asked[1])
  end)
  -- A closed fold hides its lines; one that a window shows through is a part of its own.
  vim.api.nvim_set_current_win(top)
  vim.cmd('silent only')
  local method = vim.wo.foldmethod
  vim.wo[0][0].foldmethod = 'manual'
  vim.cmd('normal! gg')
  vim.cmd('6,2000fold')
  column_requests(function(asked)
    vim.api.nvim_exec_autocmds('CursorMoved', { buffer = buffer })
    eventually('the costs around the fold', function()
      local labels = hint_labels(buffer)
      return #asked > 0 and labels[1] and labels[2001] and not labels[1251]
    end)
    assert(asked[1]:match('^0%-205 1800%-22%d%d$'), asked[1])
  end)
  -- Another program's window, and a cursor that moves on the screen, are no reason to ask.
  vim.cmd('new')
  column_requests(function(asked)
    vim.api.nvim_exec_autocmds('WinScrolled', { pattern = tostring(vim.api.nvim_get_current_win()) })
    vim.cmd.close()
    vim.api.nvim_exec_autocmds('CursorMoved', { buffer = buffer })
    vim.wait(600)
    assert(#asked == 0, vim.inspect(asked))
  end)
  vim.cmd('normal! zE')
  vim.wo[0][0].foldmethod = method
  undo_edits()
end)

it('leaves nothing behind when a buffer is wiped out', function()
  local buffer = open_long()
  vim.cmd('DmirHeat time')
  vim.cmd.DmirHistory()
  local list = vim.api.nvim_get_current_buf()
  vim.cmd.bwipeout(list)
  local function groups()
    local found = {}
    for _, autocmd in ipairs(vim.api.nvim_get_autocmds({})) do
      if autocmd.group_name and autocmd.group_name:match('^dmir%..*%.' .. buffer .. '$') then
        found[autocmd.group_name] = true
      end
    end
    return found
  end
  assert(groups()['dmir.column.' .. buffer], vim.inspect(groups()))
  open('ffn.dmir')
  vim.cmd.bwipeout({ buffer, bang = true })
  for _, name in ipairs({ 'dmir.column.' .. buffer, 'dmir.heat.' .. buffer, 'dmir.lenses.' .. buffer, 'dmir.history.' .. list }) do
    assert(not pcall(vim.api.nvim_get_autocmds, { group = name }), name)
  end
end)

it('explains an op on hover', function()
  local buffer = open('ffn.dmir')
  local hover = request(buffer, 'textDocument/hover', position(buffer, 'dm.einsum'))
  assert(vim.inspect(hover.contents):match('einsum'))
end)

it('goes to the definition of a value', function()
  local buffer = open('ffn.dmir')
  cursor_on(buffer, '%h, %b')
  local row = find(buffer, '%h = ')
  vim.lsp.buf.definition()
  eventually('the jump', function()
    return vim.api.nvim_win_get_cursor(0)[1] == row + 1
  end)
end)

it('lists the functions', function()
  local buffer = open('ffn.dmir')
  local names = vim.tbl_map(function(symbol)
    return symbol.name
  end, request(buffer, 'textDocument/documentSymbol'))
  assert(table.concat(names, ' '):match('ffn.*ffn_fused'), vim.inspect(names))
end)

it('formats and keeps the comments', function()
  local buffer = open('messy.dmir')
  vim.lsp.buf.format({ timeout_ms = patience })
  local line = lines(buffer)[find(buffer, 'dm.exp') + 1]
  assert(line:match('^  %%y = dm%.exp %%x : tensor<64x64xf32> +// kept$'), line)
  undo_edits()
end)

it('removes a finding with its quick fix', function()
  local buffer = open('ffn.dmir')
  local before = eventually('a finding', function()
    local all = findings(buffer)
    return #all > 0 and all
  end)
  local function fixable(diagnostic)
    vim.api.nvim_win_set_cursor(0, { diagnostic.lnum + 1, diagnostic.col })
    local range = {
      start = { line = diagnostic.lnum, character = diagnostic.col },
      ['end'] = { line = diagnostic.end_lnum, character = diagnostic.end_col },
    }
    local context = { diagnostics = { diagnostic.user_data.lsp }, only = { 'quickfix' } }
    return (request(buffer, 'textDocument/codeAction', { range = range, context = context }) or {})[1]
  end
  for _, diagnostic in ipairs(before) do
    local fix = fixable(diagnostic)
    if fix then
      vim.lsp.buf.code_action({
        apply = true,
        context = { diagnostics = { diagnostic.user_data.lsp }, only = { 'quickfix' } },
        filter = function(action)
          return action.title == fix.title
        end,
      })
      local function count(all)
        return #vim.tbl_filter(function(d)
          return d.code == diagnostic.code
        end, all)
      end
      eventually('one finding less', function()
        return count(findings(buffer)) < count(before)
      end)
      assert(#errors(buffer) == 0)
      undo_edits()
      return
    end
  end
  error('no finding has a quick fix')
end)

it('has lenses above the functions', function()
  local buffer = open('ffn.dmir')
  local titles = vim.tbl_map(function(lens)
    return lens.command.title
  end, request(buffer, 'textDocument/codeLens'))
  local all = table.concat(titles, '\n')
  assert(all:match('Run') and all:match('Cost') and all:match('%d [kMG]?B'), all)
end)

it('runs the function at the cursor and shows the measured time', function()
  local buffer = open('ffn.dmir')
  eventually('hints', function()
    return hint_text(buffer) ~= ''
  end)
  assert(not hint_text(buffer):match('•'))
  cursor_on(buffer, 'dm.relu')
  messages_of(function(shown)
    vim.cmd.DmirRun()
    eventually('a message', function()
      return table.concat(shown, '\n'):match('ffn')
    end)
  end)
  eventually('measured times', function()
    return hint_text(buffer):match('•')
  end)
end)

it('runs through the lens', function()
  local buffer = open('ffn.dmir')
  local lens
  for _, candidate in ipairs(request(buffer, 'textDocument/codeLens')) do
    if candidate.command.command == 'dmir.run' then
      lens = candidate
    end
  end
  local result = request(buffer, 'workspace/executeCommand', {
    command = lens.command.command,
    arguments = lens.command.arguments,
  })
  assert(result.ok and result.func:match('ffn_fused'), vim.inspect(result))
end)

it('opens the table of costs from the lens', function()
  local buffer = open('ffn.dmir')
  eventually('lenses', function()
    return #vim.lsp.codelens.get(vim.lsp.codelens.enable and { bufnr = buffer } or buffer) > 0
  end)
  cursor_on(buffer, 'func.func @ffn(')
  local select = vim.ui.select
  vim.ui.select = function(options, opts, choose)
    for index, option in ipairs(options) do
      if opts.format_item(option):match('Cost') then
        return choose(option, index)
      end
    end
  end
  vim.lsp.codelens.run()
  eventually('the table', function()
    return vim.bo.buftype == 'nofile' and table.concat(lines(0), '\n'):match('%d [kM]B')
  end)
  vim.ui.select = select
  vim.cmd.close()
end)

it('folds long signatures', function()
  if not vim.lsp.foldexpr then
    return -- before Neovim 0.11
  end
  local buffer = open('bert_encoder.dmir')
  local row = find(buffer, 'func.func @bert_encoder')
  eventually('folds', function()
    return vim.fn.foldlevel(row + 1) > 0
  end)
  assert(vim.fn.foldclosed(row + 2) == -1, 'folded without being told to')
  vim.cmd('DmirFold')
  eventually('a closed fold', function()
    return vim.fn.foldclosed(row + 2) == row + 1
  end)
  assert(vim.fn.foldtextresult(row + 1):match('func%.func @bert_encoder%( …$'), vim.fn.foldtextresult(row + 1))
  assert(vim.fn.foldclosed(find(buffer, '%qkv = dm.einsum') + 1) == -1, 'the body is open')
  vim.cmd('normal! zR')
end)

it('splits a line that is too long to fold, and folds its types', function()
  local long = '  %h = dm.einsum "bln,nu->blu" %x, %w : (tensor<8x64x128xf32>, tensor<128x256xf32>) -> tensor<8x64x256xf32>'
  local head = 'func.func @f(%x: tensor<8x64x128xf32>, %w: tensor<128x256xf32>) -> tensor<8x64x256xf32> {'
  vim.fn.writefile({ head, long, '  return %h : tensor<8x64x256xf32>', '}' }, workspace .. '/wide.dmir')
  local buffer, row = open('wide.dmir'), 1
  vim.api.nvim_win_set_cursor(0, { row + 1, 4 })
  vim.lsp.buf.code_action({
    apply = true,
    filter = function(action)
      return action.title:match('^Split long lines') ~= nil
    end,
  })
  eventually('two lines', function()
    local now = lines(buffer)
    return now[row + 2]:match('^      : %(tensor<') and now[row + 1] .. ' ' .. vim.trim(now[row + 2]) == long
  end)
  if vim.lsp.foldexpr then
    eventually('a fold', function()
      vim.cmd('DmirFold')
      return vim.fn.foldclosed(row + 2) == row + 1
    end)
    vim.cmd('normal! zR')
  end
  undo_edits()
end)

it('offers the rest of a row of lenses', function()
  local buffer = open('ffn.dmir')
  local client = get_client(buffer)
  local all = request(buffer, 'textDocument/codeLens')
  local last = vim.iter(all):find(function(lens)
    return lens.command.command == 'dmir.more'
  end)
  local select, offered = vim.ui.select, nil
  vim.ui.select = function(options, opts, choose)
    offered = vim.tbl_map(opts.format_item, options)
    for _, option in ipairs(options) do
      if option.title == 'Show CUDA' then
        choose(option)
      end
    end
  end
  client.commands['dmir.more'](last.command, { client_id = client.id, bufnr = buffer })
  vim.ui.select = select
  assert(vim.tbl_contains(offered, 'Roofline') and not vim.tbl_contains(offered, 'Cost'), vim.inspect(offered))
  eventually('the kernels', function()
    return vim.api.nvim_buf_get_name(0):match('^dmir:/+cuda/')
  end)
  vim.cmd.close()
end)

it('opens the table of costs', function()
  open('ffn.dmir')
  vim.cmd('DmirCost ffn_fused')
  local text = eventually('the table', function()
    local all = table.concat(lines(0), '\n')
    return vim.bo.buftype == 'nofile' and all:match('ffn_fused') and all
  end)
  assert(text:match('%d [kM]B'), text)
  assert(not vim.bo.modifiable)
  vim.cmd.close()
end)

it('computes for another machine', function()
  local buffer = open('ffn.dmir')
  local function totals()
    local titles = {}
    for _, lens in ipairs(request(buffer, 'textDocument/codeLens')) do
      titles[#titles + 1] = lens.command.title
    end
    return table.concat(titles, '\n')
  end
  assert(totals():match('h200'), totals())
  vim.cmd('DmirTarget a100-80')
  eventually('its totals', function()
    return totals():match('a100')
  end)
  vim.cmd('DmirTarget h200')
  eventually('the old totals', function()
    return totals():match('h200')
  end)
end)

---Puts a line that is being typed behind the first line with a text, and gives the position at its end.
local function typing(buffer, behind, line)
  local row = find(buffer, behind) + 1
  vim.api.nvim_buf_set_lines(buffer, row, row, true, { line })
  return { position = { line = row, character = #line } }
end

it('completes an op, with its documentation', function()
  local buffer = open('ffn.dmir')
  assert(vim.bo[buffer].omnifunc == 'v:lua.vim.lsp.omnifunc', vim.bo[buffer].omnifunc)
  local answer = request(buffer, 'textDocument/completion', typing(buffer, 'dm.einsum', '  %z = dm.softm'))
  local softmax = vim.tbl_filter(function(item)
    return item.label == 'dm.softmax'
  end, answer.items)[1]
  assert(softmax and softmax.textEdit.newText:match('^dm%.softmax'), vim.inspect(softmax))
  local resolved = request(buffer, 'completionItem/resolve', softmax)
  assert(resolved.documentation.value:match('sum to 1'), vim.inspect(resolved))
  undo_edits()
end)

it('completes a value whose type fits', function()
  local buffer = open('ffn.dmir')
  local answer = request(buffer, 'textDocument/completion', typing(buffer, 'dm.einsum', '  %z = dm.softmax %'))
  assert(answer.items[1].label == '%h', vim.inspect(answer.items[1]))
  undo_edits()
end)

it('shows the form of the op that is being typed', function()
  local buffer = open('ffn.dmir')
  local help = request(buffer, 'textDocument/signatureHelp', typing(buffer, 'dm.einsum', '  %z = dm.softmax %h, dim = '))
  local signature = help.signatures[1]
  assert(signature.label:match('dm%.softmax %%x'), vim.inspect(help))
  assert(vim.inspect(signature.parameters[(signature.activeParameter or help.activeParameter) + 1]):match('dimension'), vim.inspect(help))
  undo_edits()
end)

it('colours arguments as such', function()
  local buffer = open('ffn.dmir')
  local row, column = find(buffer, '%x')
  eventually('its token', function()
    for _, token in ipairs(vim.lsp.semantic_tokens.get_at_pos(buffer, row, column) or {}) do
      if token.type == 'parameter' then
        return true
      end
    end
  end)
end)

it('has the colours of the tree-sitter parser', function()
  local buffer = open('ffn.dmir')
  assert(vim.treesitter.highlighter.active[buffer], 'no highlighter')
  local function captures(text)
    local row, column = find(buffer, text)
    vim.treesitter.get_parser(buffer, 'dmir'):parse(true)
    return vim.tbl_map(function(capture)
      return capture.capture
    end, vim.treesitter.get_captures_at_pos(buffer, row, column))
  end
  for text, name in pairs({
    ['// A feed'] = 'comment',
    ['func.func'] = 'keyword',
    ['@ffn'] = 'function',
    ['%x'] = 'variable.parameter',
    ['tensor'] = 'type.builtin',
    ['dm.einsum'] = 'function.builtin',
    ['dm.kernel'] = 'keyword',
    ['"bln'] = 'string',
    ['return'] = 'keyword',
  }) do
    local all = captures(text)
    assert(all[#all] == name, text .. ': ' .. vim.inspect(all))
  end
  for _, kind in ipairs({ 'highlights', 'folds', 'locals' }) do
    assert(vim.treesitter.query.get('dmir', kind), 'no query for ' .. kind)
  end
end)

it('parses random edits as it parses the whole text', function()
  local buffer = open('ffn.dmir')
  local parser = vim.treesitter.get_parser(buffer, 'dmir')
  local pieces = { '\n', ' ', '  ', '//', '%', '^bb1:', '{', '}', '(', '"a.b"(', '%a = dm.add ', ' = ', ', ', ': f32', 'return', '%c:2, %d = "x.y"() : () -> ()\n', '-> ', '#m = ' }
  local seed, compared, different = 7, 0, 0
  local function random(n)
    seed = (seed * 48271) % 2147483647
    return seed % n
  end
  for _ = 1, 600 do
    local row = random(vim.api.nvim_buf_line_count(buffer))
    local line = vim.api.nvim_buf_get_lines(buffer, row, row + 1, true)[1]
    local from = random(#line + 1)
    local to = random(3) == 0 and math.min(#line, from + random(12)) or from
    vim.api.nvim_buf_set_text(buffer, row, from, row, to, vim.split(pieces[random(#pieces) + 1], '\n'))
    local tree = parser:parse(true)[1]:root()
    local text = table.concat(lines(buffer), '\n') .. '\n'
    local fresh = vim.treesitter.get_string_parser(text, 'dmir'):parse(true)[1]:root()
    -- Error recovery may differ, so edits are undone often to return to valid text.
    if not fresh:has_error() then
      compared = compared + 1
      if tree:sexpr() ~= fresh:sexpr() then
        different = different + 1
        parser:invalidate(true)
      end
    end
    if fresh:has_error() or random(3) == 0 then
      vim.cmd('silent undo')
      parser:parse(true)
    end
  end
  assert(compared > 100, 'only ' .. compared .. ' texts without an error')
  -- In rare cases, nodes of a broken text survive one more edit.
  assert(different * 50 < compared, different .. ' of ' .. compared .. ' trees are others than those of the whole text')
  undo_edits()
end)

it('folds by the syntax tree', function()
  local buffer = open('ffn.dmir')
  vim.wo.foldmethod, vim.wo.foldexpr = 'expr', 'v:lua.vim.treesitter.foldexpr()'
  local row = find(buffer, 'dm.kernel')
  eventually('a fold', function()
    return vim.fn.foldlevel(row + 1) == 2
  end)
  vim.wo.foldmethod = 'manual'
end)

---What the lines of a buffer are coloured by, by row.
local function heat_levels(buffer)
  local levels = {}
  local namespace = vim.api.nvim_get_namespaces()['dmir.heat']
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, namespace, 0, -1, { details = true })) do
    levels[mark[2]] = tonumber(mark[4].line_hl_group:match('^DmirHeat(%d)$'))
  end
  return levels
end

it('colours lines by heat', function()
  local buffer = open('ffn.dmir')
  local einsum, relu = find(buffer, 'dm.einsum'), find(buffer, 'dm.relu')
  vim.cmd('DmirHeat time')
  local levels = eventually('colours', function()
    local all = heat_levels(buffer)
    return next(all) and all
  end)
  assert(levels[einsum] and levels[relu] and levels[einsum] > levels[relu], vim.inspect(levels))
  assert(require('dmir.heat').text(buffer, einsum):match('%%'))
  vim.cmd('DmirHeat waste')
  eventually('the colours of waste', function()
    local all = heat_levels(buffer)
    return all[relu] and not vim.deep_equal(all, levels) and all
  end)
  vim.api.nvim_buf_set_lines(buffer, 0, 0, true, { '// a line more' })
  vim.api.nvim_exec_autocmds('TextChanged', { buffer = buffer })
  eventually('the colours one line below', function()
    return heat_levels(buffer)[relu + 1]
  end)
  vim.cmd('DmirHeat off')
  assert(not next(heat_levels(buffer)))
  undo_edits()
end)

it('switches hints and lint off and on', function()
  local buffer = open('ffn.dmir')
  local function switch(setting, what, ask)
    eventually(what, ask)
    vim.cmd('DmirToggle ' .. setting)
    eventually('no ' .. what, function()
      return not ask()
    end)
    vim.cmd('DmirToggle ' .. setting)
    eventually(what .. ' again', ask)
  end
  switch('hints', 'hints', function()
    return hint_text(buffer):match('µs') or hint_text(buffer):match('MB')
  end)
  switch('lint', 'findings', function()
    return #findings(buffer) > 0
  end)
end)

it('shows the program at other levels, and follows edits', function()
  local buffer = open('ffn.dmir')
  local source = vim.api.nvim_get_current_win()
  local function view(name, pattern, filetype)
    vim.api.nvim_set_current_win(source)
    vim.cmd('DmirView ' .. name)
    eventually('the ' .. name .. ' view', function()
      return vim.api.nvim_buf_get_name(0):match('^dmir:/+' .. name .. '/') and table.concat(lines(0), '\n'):match(pattern)
    end)
    assert(vim.bo.buftype == 'nofile' and not vim.bo.modifiable)
    assert(vim.bo.filetype == filetype, vim.bo.filetype)
    assert(#vim.lsp.get_clients({ bufnr = 0 }) == 0, 'a client took a virtual document')
    return vim.api.nvim_get_current_buf()
  end
  view('expanded', 'dm%.einsum', 'dmir')
  view('cost', 'minimum', 'text')
  view('fixed', 'dm%.kernel', 'dmir')
  local generic = view('generic', '"dm%.einsum"', 'dmir')
  vim.api.nvim_buf_call(buffer, function()
    vim.cmd([[%s/dm\.relu/dm.tanh/]])
  end)
  eventually('the edit in the view', function()
    return table.concat(lines(generic), '\n'):match('"dm%.tanh"')
  end)
  vim.api.nvim_set_current_win(source)
  vim.cmd.only()
  undo_edits()
end)

it('compiles a function, and goes from a line to its kernel and back', function()
  local buffer = open('ffn.dmir')
  local source = vim.api.nvim_get_current_win()
  cursor_on(buffer, 'dm.relu')
  local line = vim.api.nvim_win_get_cursor(0)[1]
  messages_of(function(shown)
    vim.cmd('DmirCompile')
    eventually('what came of it', function()
      return table.concat(shown, '\n'):match('@ffn compiled for sm_%d+a? in .* kernels? moves? ')
    end)
  end)
  vim.cmd('DmirCuda')
  eventually('the kernel', function()
    local shown = table.concat(vim.api.nvim_buf_get_lines(0, vim.api.nvim_win_get_cursor(0)[1] - 1, -1, false), '\n')
    return vim.api.nvim_buf_get_name(0):match('^dmir:/+cuda/ffn%.cu') and vim.api.nvim_win_get_cursor(0)[1] > 1 and shown:match('DM_KERNEL')
  end)
  vim.api.nvim_feedkeys('gd', 'x', false)
  eventually('the line', function()
    local there = vim.api.nvim_win_get_cursor(0)[1]
    return vim.api.nvim_get_current_buf() == buffer and there > 1 and there <= line
  end)
  vim.api.nvim_set_current_win(source)
  vim.cmd('DmirView after-fuse')
  eventually('the fused function', function()
    return vim.api.nvim_buf_get_name(0):match('^dmir:/+after%-fuse/') and table.concat(lines(0), '\n'):match('dm%.kernel')
  end)
  vim.api.nvim_set_current_win(source)
  vim.cmd.only()
end)

---Fetches an address as a browser with the cookies of the file would, while Neovim goes on.
local function browse(cookies, ...)
  local result
  local command = { 'curl', '-sS', '-L', '-m', '90', '-c', cookies, '-b', cookies, '-w', '%{stderr}%{url_effective} %{http_code}' }
  vim.system(vim.list_extend(command, { ... }), { text = true }, function(done)
    result = done
  end)
  eventually('the page', function()
    return result
  end)
  assert(result.code == 0, result.stderr)
  local url, status = result.stderr:match('(%S+) (%d+)$')
  return result.stdout, url, status
end

it('opens panels in the browser, from which places are revealed', function()
  local buffer = open('ffn.dmir')
  local open_url, opened = vim.ui.open, nil
  vim.ui.open = function(url)
    opened = url
    return { wait = function() return { code = 0 } end }
  end
  local cookies = vim.fn.tempname()
  for _, command in ipairs({ 'DmirRoofline', 'DmirMemory', 'DmirDiff', 'DmirDiff ffn saved', 'DmirDiff git:nowhere', 'DmirGraph' }) do
    cursor_on(buffer, 'dm.einsum')
    opened = nil
    vim.cmd(command)
    local url = eventually('the address of ' .. command, function()
      return opened
    end)
    assert(url:match('^http://127%.0%.0%.1:%d+/'), url)
    local page, at, status = browse(cookies, url)
    assert(status == '200' and page:match('id="data"'), command .. ': ' .. status .. ' ' .. page:sub(1, 200))
    assert(command ~= 'DmirDiff git:nowhere' or page:match('"reason":"'), 'no reason why there is no comparison')
    if command == 'DmirGraph' then
      local row = find(buffer, 'dm.relu')
      local body = vim.json.encode({ type = 'reveal', line = row + 1, column = 3, endColumn = 5 })
      local origin = at:match('^http://[^/]+')
      local _, _, posted = browse(cookies, '-H', 'Content-Type: application/json', '-H', 'Origin: ' .. origin, '-d', body, (at:gsub('[^/]*$', '')) .. 'reveal')
      assert(posted:match('^20'), 'reveal: ' .. posted)
      eventually('the cursor at the place', function()
        return vim.api.nvim_win_get_cursor(0)[1] == row + 1
      end)
    end
  end
  vim.ui.open = open_url
end)

it('plans a training step, shows its plans and writes one as one step of undo', function()
  local buffer = open('mlp_train.dmir')
  local source, before = vim.api.nvim_get_current_win(), table.concat(lines(buffer), '\n')
  local planned
  cursor_on(buffer, 'dm.grad')
  messages_of(function(shown)
    vim.cmd('DmirPlan none')
    assert(table.concat(shown, '\n'):match('none is no number of devices'))
    vim.cmd('DmirPlan 4')
    eventually('the plan', function()
      return table.concat(shown, '\n'):match('@train on 4 × .* a step')
    end)
  end)
  eventually('the program with the plan', function()
    planned = table.concat(lines(0), '\n')
    return vim.api.nvim_buf_get_name(0):match('^dmir:/+planned%-1/') and planned:match('dm%.mesh @plan {')
  end)
  assert(not vim.bo.modifiable and table.concat(lines(buffer), '\n') == before)

  vim.api.nvim_set_current_win(source)
  vim.cmd('DmirView plans')
  eventually('the table of plans', function()
    return vim.api.nvim_buf_get_name(0):match('^dmir:/+plans/') and lines(0)[1]:match('^@train on 4 × ')
  end)
  vim.api.nvim_set_current_win(source)
  local open_url, opened = vim.ui.open, nil
  vim.ui.open = function(url)
    opened = url
    return { wait = function() return { code = 0 } end }
  end
  vim.cmd.DmirPlans()
  local page, _, status = browse(vim.fn.tempname(), eventually('the address of the panel', function()
    return opened
  end))
  vim.ui.open = open_url
  assert(status == '200' and page:match('id="data"') and page:match('"plans":{'), status .. ' ' .. page:sub(1, 200))

  vim.cmd('DmirApplyPlan 1')
  eventually('the plan in the text', function()
    return table.concat(lines(buffer), '\n') == planned
  end)
  vim.cmd.undo()
  assert(table.concat(lines(buffer), '\n') == before)
  vim.cmd.only()
  undo_edits()
end)

it('lists what was applied, reverts an entry and follows the undo', function()
  local buffer = open('kernel.dmir')
  local source = vim.api.nvim_get_current_win()
  local before = table.concat(lines(buffer), '\n')
  eventually('findings', function()
    return #findings(buffer) > 0
  end)
  vim.lsp.buf.code_action({
    apply = true,
    context = { diagnostics = {}, only = { 'source.fixAll.dmir' } },
    range = { start = { 1, 0 }, ['end'] = { 1, 0 } },
  })
  eventually('the fixed text', function()
    return table.concat(lines(buffer), '\n') ~= before
  end)
  vim.api.nvim_buf_set_lines(buffer, 0, 0, false, { '// A note.' })
  vim.cmd.DmirHistory()
  local list = vim.api.nvim_get_current_buf()
  local function shown(pattern)
    eventually(pattern, function()
      return vim.api.nvim_buf_is_valid(list) and table.concat(lines(list), '\n'):match(pattern)
    end)
  end
  assert(list ~= buffer)
  shown('Apply all safe fixes')
  shown('@split moved .* → .* %(−')
  vim.api.nvim_win_set_cursor(0, { 2, 0 })
  vim.api.nvim_feedkeys('r', 'x', false)
  eventually('the text of before', function()
    return table.concat(lines(buffer), '\n') == '// A note.\n' .. before
  end)
  shown('reverted')
  vim.api.nvim_set_current_win(source)
  vim.cmd.undo()
  vim.api.nvim_exec_autocmds('TextChanged', { buffer = buffer })
  eventually('the entry as it was', function()
    return not table.concat(lines(list), '\n'):match('reverted')
  end)
  vim.cmd.only()
  undo_edits()
end)

it('has a history for each of two files of one name', function()
  local first = open('kernel.dmir')
  vim.fn.mkdir(workspace .. '/other', 'p')
  vim.fn.writefile(lines(first), workspace .. '/other/kernel.dmir')
  vim.cmd.DmirHistory()
  local list = vim.api.nvim_get_current_buf()
  vim.cmd.wincmd('p')
  local second = open('other/kernel.dmir')
  vim.cmd.DmirHistory()
  local other = vim.api.nvim_get_current_buf()
  assert(vim.api.nvim_buf_is_valid(list) and other ~= list and first ~= second)
  vim.cmd.wincmd('p')
  vim.cmd.DmirHistory() -- of the second again
  assert(vim.api.nvim_get_current_buf() == other)
  vim.cmd('only')
end)

it('shows the address if no browser opens', function()
  local buffer = open('ffn.dmir')
  cursor_on(buffer, 'dm.einsum')
  local open_url = vim.ui.open
  vim.ui.open = function()
    return nil, 'no handler found'
  end
  messages_of(function(shown)
    vim.cmd.DmirGraph()
    eventually('the address', function()
      return table.concat(shown, '\n'):match('http://127%.0%.0%.1')
    end)
  end)
  vim.ui.open = open_url
end)

it('reports its health', function()
  open('ffn.dmir')
  vim.cmd('checkhealth dmir')
  local report = table.concat(lines(0), '\n')
  for _, what in ipairs({ 'the server is ', '1 running', 'the tree%-sitter parser is installed' }) do
    assert(report:match(what), report)
  end
  assert(not report:match('ERROR') and not report:match('WARNING'), report)
  vim.cmd('bwipeout!')
end)

it('reports a broken op and handles the rest of the file', function()
  local buffer = open('broken.dmir')
  local found = eventually('an error', function()
    local all = errors(buffer)
    return #all > 0 and all
  end)
  assert(found[1].lnum == find(buffer, 'dm.nonsense'), vim.inspect(found[1]))
  local row = find(buffer, 'dm.tanh')
  eventually('a hint after the broken op', function()
    return hint_labels(buffer)[row]
  end)
end)

it('shows the costs of a traced program beside its Python file, and asks before it runs a command', function()
  vim.cmd.edit({ args = { workspace .. '/traced/model.py' }, bang = true })
  local buffer = vim.api.nvim_get_current_buf()
  local row = find(buffer, 'jax.nn.relu')
  eventually('the cost as compiled', function()
    return hint_labels(buffer)[row] == '10.2µs 634kB'
  end)
  eventually('the finding', function()
    return #findings(buffer) > 0
  end)
  local hover = request(buffer, 'textDocument/hover', { position = { line = row, character = 10 } })
  assert(hover.contents.value:match('as written') and hover.contents.value:match('kernels: '), vim.inspect(hover))
  local client = vim.lsp.get_clients({ bufnr = buffer, name = 'dmir_python' })[1]
  assert(not client.server_capabilities.documentFormattingProvider)
  vim.api.nvim_buf_set_lines(buffer, 0, 0, false, { '# a line more' })
  eventually('the cost one line below', function()
    return hint_labels(buffer)[row + 1] == '10.2µs 634kB'
  end)
  local asked
  local handler = vim.lsp.handlers['window/showMessageRequest']
  vim.lsp.handlers['window/showMessageRequest'] = function(_, result)
    asked = result.message
    return vim.NIL
  end
  messages_of(function(shown)
    vim.cmd.DmirTraceAgain()
    eventually('the question', function()
      return asked
    end)
    eventually('what follows from no answer', function()
      return shown[1] == 'step was not traced'
    end)
  end)
  vim.lsp.handlers['window/showMessageRequest'] = handler
  assert(asked:match('^Run python3 %-m dmir trace model:step'), asked)
  undo_edits()
end)

---Each client's answer to a request about a buffer, by the client's name.
local function answers_of(buffer, method, params)
  params = vim.tbl_extend('keep', params, { textDocument = { uri = vim.uri_from_bufnr(buffer) } })
  local found = {}
  for id, answer in pairs(assert(vim.lsp.buf_request_sync(buffer, method, params, patience))) do
    assert(not answer.err, vim.inspect(answer.err))
    found[vim.lsp.get_client_by_id(id).name] = answer.result
  end
  return found
end

-- The person's own server for Python, where scripts/test-nvim.sh has one.
if vim.env.DMIR_PYRIGHT then
  it('works beside another server for Python', function()
    messages_of(function(shown)
      vim.v.errmsg = ''
      vim.cmd.edit({ args = { workspace .. '/traced/model.py' }, bang = true })
      local buffer = vim.api.nvim_get_current_buf()
      vim.lsp.start({ name = 'basedpyright', cmd = { 'node', vim.env.DMIR_PYRIGHT, '--stdio' }, root_dir = workspace .. '/traced' }, { bufnr = buffer })
      local row = find(buffer, 'jax.nn.relu')
      eventually('the cost', function()
        return hint_labels(buffer)[row] == '10.2µs 634kB'
      end)
      local sources = eventually('the diagnostics of both', function()
        local sources = {}
        for _, d in ipairs(vim.diagnostic.get(buffer)) do
          sources[d.source] = (sources[d.source] or 0) + 1
          assert(d.source ~= 'dmir' or d.severity ~= vim.diagnostic.severity.ERROR, vim.inspect(d))
        end
        return sources.basedpyright and sources.dmir and sources
      end)
      local hovers = answers_of(buffer, 'textDocument/hover', position(buffer, 'norm(x, p['))
      assert(hovers.dmir_python.contents.value:match('as written'), vim.inspect(hovers))
      assert(hovers.basedpyright.contents.value:match('norm'), vim.inspect(hovers))
      local range = { start = { line = 0, character = 0 }, ['end'] = { line = #lines(buffer), character = 0 } }
      local hints = answers_of(buffer, 'textDocument/inlayHint', { range = range })
      assert(#hints.basedpyright > 0, vim.inspect(hints))
      -- What is about Python itself the person's server answers alone.
      for _, method in ipairs({ 'textDocument/definition', 'textDocument/references', 'textDocument/documentSymbol' }) do
        local params = vim.tbl_extend('keep', position(buffer, 'norm(x, p['), { context = { includeDeclaration = true } })
        local found = answers_of(buffer, method, params)
        assert(#(found.basedpyright or {}) > 0 and not found.dmir_python, method .. vim.inspect(found))
      end
      vim.api.nvim_buf_set_lines(buffer, 0, 0, false, { 'wrong: int = "text"' })
      eventually('the error of the one and the cost of the other', function()
        local wrong = vim.diagnostic.get(buffer, { lnum = 0, severity = vim.diagnostic.severity.ERROR })
        return #wrong > 0 and wrong[1].source == 'basedpyright' and hint_labels(buffer)[row + 1] == '10.2µs 634kB'
      end)
      assert(sources.dmir > 0 and #shown == 0 and vim.v.errmsg == '', vim.inspect({ sources, shown, vim.v.errmsg }))
      undo_edits()
    end)
  end)
end

vim.cmd(failures > 0 and 'cquit 1' or 'qall!')
