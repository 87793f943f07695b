import { once } from "node:events";
import type { Socket } from "node:net";
import { serialize } from "bson";
import { headerBytes, ProtocolError, readHeader } from "../protocol/message.ts";
import { readRequest } from "../protocol/request.ts";
import { writeRefusal, writeReply } from "../protocol/response.ts";
import { createByteSource } from "./byte-source.ts";

const messageBytesMax = 64 << 10;
const withinMs = 5_000;

/**
 * Answers the first message of a connection beyond the maximum with an error that drivers show to their users, and ends
 * the connection. A ping, which the machine's agent sends as a probe, succeeds.
 */
export async function refuseConnection(client: Socket, connectionsMax: number): Promise<void> {
  client.on("error", () => client.destroy());
  client.setTimeout(withinMs, () => client.destroy());
  try {
    const source = createByteSource(client);
    const header = await source.take(headerBytes);
    const size = header === undefined ? 0 : readHeader(header).length;
    if (header === undefined || size <= headerBytes || size > messageBytesMax) return;
    const rest = await source.take(size - headerBytes);
    if (rest === undefined) return;
    const request = readRequest(Buffer.concat([header, rest]));
    const message = `The service has its maximum of ${connectionsMax} connections. Close some, or use a larger plan.`;
    const refusal = { code: 125, codeName: "CommandFailed", message };
    client.end(request.command === "ping" ? writeReply(request, serialize({ ok: 1 })) : writeRefusal(request, refusal));
    await once(client, "close").catch(() => undefined);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
  } finally {
    client.destroy();
  }
}
