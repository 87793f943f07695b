import { isIP, type Socket } from "node:net";

/** The address that a header of the PROXY protocol names, once it is whole. */
type Read =
  | { readonly kind: "more" }
  /** The connection begins with something else. */
  | { readonly kind: "none" }
  | { readonly kind: "header"; readonly bytes: number; readonly address: string | undefined };

const signature = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
const firstWord = Buffer.from("PROXY ");
const lineMax = 107;
const fixedBytes = 16;
const restMax = 2_048;

/**
 * Reads a header of the PROXY protocol (version 1 or 2) off a connection of a proxy that is trusted, and leaves the bytes after it to the
 * next reader. Undefined where the connection has none, or the header names no address. Throws for one that is broken or late.
 */
export function takeProxyHeader(socket: Socket, withinMs: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    let taken = Buffer.alloc(0);
    const end = (settle: () => void) => {
      clearTimeout(late);
      socket.off("readable", read);
      socket.off("close", gone);
      settle();
    };
    const gone = () => end(() => reject(new Error("the connection ended in its header")));
    const late = setTimeout(() => end(() => reject(new Error("the header came too late"))), withinMs);
    const read = () => {
      for (let part = socket.read() as Buffer | null; part !== null; part = socket.read() as Buffer | null)
        taken = Buffer.concat([taken, part]);
      try {
        const found = readProxyHeader(taken);
        if (found.kind === "more") return;
        const rest = found.kind === "header" ? taken.subarray(found.bytes) : taken;
        end(() => {
          if (rest.length > 0) socket.unshift(rest);
          resolve(found.kind === "header" ? found.address : undefined);
        });
      } catch (error) {
        end(() => reject(error));
      }
    };
    socket.on("readable", read);
    socket.once("close", gone);
  });
}

/** Pure: the header at the beginning of these bytes. Throws for one that is broken. */
export function readProxyHeader(bytes: Buffer): Read {
  if (startsLike(bytes, signature)) return bytes.length < fixedBytes ? { kind: "more" } : readSecond(bytes);
  if (startsLike(bytes, firstWord)) return readFirst(bytes);
  return { kind: "none" };
}

/** As far as there are bytes; none are like anything. */
function startsLike(bytes: Buffer, beginning: Buffer): boolean {
  const length = Math.min(bytes.length, beginning.length);
  return bytes.subarray(0, length).equals(beginning.subarray(0, length));
}

function readFirst(bytes: Buffer): Read {
  const at = bytes.subarray(0, lineMax).indexOf("\r\n");
  if (at < 0 && bytes.length >= lineMax) throw new Error("the line has no end");
  if (at < 0) return { kind: "more" };
  const [, family = "", source = ""] = bytes.subarray(0, at).toString("latin1").split(" ");
  const version = family === "TCP4" ? 4 : family === "TCP6" ? 6 : undefined;
  if (version !== undefined && isIP(source) !== version) throw new Error("the source is no address");
  return { kind: "header", bytes: at + 2, address: version === undefined ? undefined : source };
}

function readSecond(bytes: Buffer): Read {
  const [command = 0, family = 0] = [bytes[12], bytes[13]];
  const length = bytes.readUInt16BE(14);
  if (command >> 4 !== 2 || length > restMax) throw new Error("the header is of no known version");
  if (bytes.length < fixedBytes + length) return { kind: "more" };
  const rest = bytes.subarray(fixedBytes, fixedBytes + length);
  // 0 is the proxy's own, such as its checks of health.
  const isLocal = (command & 15) === 0;
  const version = family >> 4 === 1 ? 4 : family >> 4 === 2 ? 6 : undefined;
  if (!isLocal && version !== undefined && rest.length < (version === 4 ? 12 : 36)) throw new Error("it is cut short");
  const address = isLocal ? undefined : version === 4 ? fourOf(rest) : version === 6 ? sixOf(rest) : undefined;
  return { kind: "header", bytes: fixedBytes + length, address };
}

const fourOf = (rest: Buffer) => [...rest.subarray(0, 4)].join(".");

function sixOf(rest: Buffer): string {
  return Array.from({ length: 8 }, (_, at) => rest.readUInt16BE(at * 2).toString(16)).join(":");
}
