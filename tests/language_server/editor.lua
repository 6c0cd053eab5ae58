-- A real Neovim without a screen: opens a policy, waits for what the server says of it, asks for a hover, a lens
-- and a format, and writes JSON to a file.
local command = vim.split(os.getenv('RINGFENCE_LSP'), '\n')
local out = {}
local function wait(what)
  return vim.wait(40000, what, 50)
end
vim.cmd('edit ' .. os.getenv('RINGFENCE_FILE'))
local buffer = vim.api.nvim_get_current_buf()
local id = vim.lsp.start_client({
  name = 'ringfence',
  cmd = command,
  root_dir = vim.fn.fnamemodify(os.getenv('RINGFENCE_FILE'), ':p:h'),
})
vim.lsp.buf_attach_client(buffer, id)
wait(function() return #vim.diagnostic.get(buffer) > 0 end)
out.first = vim.tbl_map(function(each) return each.code end, vim.diagnostic.get(buffer))
vim.cmd('%s/alow/allow/')
wait(function()
  local found = vim.diagnostic.get(buffer)
  return #found == 0 or found[1].code ~= out.first[1]
end)
local client = vim.lsp.get_client_by_id(id)
local document = vim.lsp.util.make_text_document_params(buffer)
local line = vim.fn.search('docs/') - 1
local place = { textDocument = document, position = { line = line, character = 14 } }
local answer = client.request_sync('textDocument/hover', place, 40000, buffer)
out.hover = answer.result.contents.value
local lenses = client.request_sync('textDocument/codeLens', { textDocument = document }, 40000, buffer)
out.lens = client.request_sync('codeLens/resolve', lenses.result[1], 40000, buffer).result.command.title
vim.lsp.buf.formatting_sync({}, 40000)
out.text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n') .. '\n'
local file = io.open(os.getenv('RINGFENCE_OUT'), 'w')
file:write(vim.json.encode(out))
file:close()
vim.lsp.stop_client(id)
vim.cmd('qall!')
