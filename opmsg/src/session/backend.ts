import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { headerBytes, readHeader, writeMessage } from "../protocol/message.ts";
import { type ByteSource, createByteSource } from "./byte-source.ts";

interface ResponseEdit {
  /** Responses up to this size are read completely. */
  readonly bytesMax: number;
  /** The body to pass on. */
  edited(body: Buffer, opCode: number): Promise<Buffer>;
}

/** A connection to a process of the engine. */
export interface Backend {
  /** Sends a message. Resolves with the size of its response once that begins; undefined if the connection ended. */
  send(message: Buffer): Promise<number | undefined>;
  /**
   * Passes the response on, or drops it without `to`. False if the connection ended before.
   */
  receive(to: Socket | undefined, signal: AbortSignal, edit: ResponseEdit): Promise<boolean>;
  end(): void;
}

/** Undefined if the process does not listen. */
export async function openBackend(path: string): Promise<Backend | undefined> {
  const socket = connect({ path });
  try {
    await once(socket, "connect");
  } catch {
    return undefined;
  }
  socket.on("error", () => socket.destroy());
  const source: ByteSource = createByteSource(socket);
  let header: Buffer | undefined;
  return {
    async send(message) {
      socket.write(message);
      header = await source.take(headerBytes);
      return header && readHeader(header).length;
    },
    async receive(to, signal, edit) {
      if (header === undefined) return false;
      const { length, ...others } = readHeader(header);
      const rest = length - headerBytes;
      if (to !== undefined && rest <= edit.bytesMax) {
        const body = await source.take(rest);
        if (body === undefined) return false;
        if (!to.write(writeMessage(others, await edit.edited(body, others.opCode))))
          await once(to, "drain", { signal });
        return true;
      }
      to?.write(header);
      return source.pass(rest, to, signal);
    },
    end: () => socket.destroy(),
  };
}
