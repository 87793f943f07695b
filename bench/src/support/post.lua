-- Posts the body of a file with the headers of the command line.
function init(args)
  local file = assert(io.open(args[1], "r"))
  wrk.method = "POST"
  wrk.body = file:read("*a")
  file:close()
end
