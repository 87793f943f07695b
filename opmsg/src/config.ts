import { integer, text } from "@holdfast/common/config.ts";

/** Settings of the process `opmsg`, which the machine's agent starts beside the engine. */
export const opMsgSettings = {
  socket: text("OP_MSG_SOCKET", "Path of the Unix socket of the listener"),
  statusSocket: text("OP_MSG_STATUS_SOCKET", "Path of the Unix socket that prints the counts of the process"),
  writersSocket: text("OP_MSG_WRITERS_SOCKET", "Path of the socket of the process for users who may write"),
  readersSocket: text("OP_MSG_READERS_SOCKET", "Path of the socket of the process for users who may only read"),
  connectionsMax: integer("OP_MSG_CONNECTIONS", "Max number of connections; further ones get an error", 1_000),
  requestMemoryBytes: integer("OP_MSG_REQUEST_MEMORY", "Memory for large requests in progress, in bytes", 402_653_184),
  replyMemoryBytes: integer(
    "OP_MSG_REPLY_MEMORY",
    "Memory for replies of documents in progress, in bytes",
    402_653_184,
  ),
  socketDirectory: text("OP_MSG_SOCKET_DIRECTORY", "Directory of PostgreSQL's Unix socket"),
  enginePort: integer("OP_MSG_ENGINE_PORT", "Port in the name of PostgreSQL's Unix socket", 5_432),
  database: text("OP_MSG_DATABASE", "Database of PostgreSQL in which roles are read"),
  role: text("OP_MSG_ROLE", "Role of the process in PostgreSQL"),
  writers: text("OP_MSG_WRITERS", "Roles whose members may write, separated by commas"),
  readers: text("OP_MSG_READERS", "Roles whose members may only read, separated by commas"),
};
