-- Sends the Authorization headers of a file in turn, a line each.
local headers = {}
local at = 0

function init(args)
  for line in io.lines(args[1]) do
    headers[#headers + 1] = line
  end
end

function request()
  at = at % #headers + 1
  return wrk.format("GET", nil, { authorization = headers[at] })
end
