import { once } from "node:events";
import { connect } from "node:net";
import { deserialize, type Document, serialize } from "bson";
import { createByteSource } from "../session/byte-source.ts";
import { headerBytes, messageBytesMax, opCodes, ProtocolError, readHeader, writeMessage } from "./message.ts";

/** Flags of OP_MSG and the kind of its first section. */
const prefixBytes = 5;

/** Sends one command over a new connection to a Unix socket, without a sign-in, and returns its response. */
export async function sendCommand(path: string, command: Document, signal: AbortSignal): Promise<Document> {
  signal.throwIfAborted();
  const socket = connect({ path, signal });
  // The error also rejects the wait below; a late one has no other listener.
  socket.on("error", () => socket.destroy());
  try {
    await once(socket, "connect");
    const body = Buffer.concat([Buffer.alloc(prefixBytes), serialize(command)]);
    socket.write(writeMessage({ requestId: 1, responseTo: 0, opCode: opCodes.msg }, body));
    const source = createByteSource(socket);
    const header = await source.take(headerBytes);
    const length = header === undefined ? 0 : readHeader(header).length;
    if (length <= headerBytes || length > messageBytesMax) throw new ProtocolError("the connection ended early");
    const response = await source.take(length - headerBytes);
    if (response === undefined) throw new ProtocolError("the connection ended early");
    return deserialize(response.subarray(prefixBytes));
  } finally {
    socket.destroy();
  }
}
