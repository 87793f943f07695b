import { isIP, type Socket } from "node:net";

/** Result of parsing a PROXY protocol header; `more` if it is incomplete. */
type ReadResult =
  | { readonly kind: "more" }
  /** The connection does not start with a header. */
  | { readonly kind: "none" }
  | { readonly kind: "header"; readonly bytes: number; readonly address: string | undefined };

const version2Signature = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
const version1Prefix = Buffer.from("PROXY ");
const maxVersion1Bytes = 107;
const version2HeadBytes = 16;
const maxVersion2BodyBytes = 2_048;

/**
 * Reads a PROXY protocol header (version 1 or 2) from a trusted proxy's connection and leaves the bytes after it to the
 * next reader. Undefined if there is no header or it names no address. Rejects if the header is invalid, or incomplete
 * after `timeoutMs`. Source: haproxy's proxy-protocol.txt, sections 2.1 and 2.2.
 */
export function takeProxyHeader(socket: Socket, timeoutMs: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    let taken = Buffer.alloc(0);
    const end = (settle: () => void) => {
      clearTimeout(timer);
      socket.off("readable", read);
      socket.off("close", onClose);
      settle();
    };
    const onClose = () => end(() => reject(new Error("the connection closed within its header")));
    const timer = setTimeout(
      () => end(() => reject(new Error(`the header was incomplete after ${timeoutMs} ms`))),
      timeoutMs,
    );
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
    socket.once("close", onClose);
  });
}

/** Parses the header at the start of these bytes. Throws if it is invalid. */
export function readProxyHeader(bytes: Buffer): ReadResult {
  if (matchesSoFar(bytes, version2Signature))
    return bytes.length < version2HeadBytes ? { kind: "more" } : readVersion2(bytes);
  if (matchesSoFar(bytes, version1Prefix)) return readVersion1(bytes);
  return { kind: "none" };
}

/** True if the bytes received so far match; no bytes match anything. */
function matchesSoFar(bytes: Buffer, beginning: Buffer): boolean {
  const length = Math.min(bytes.length, beginning.length);
  return bytes.subarray(0, length).equals(beginning.subarray(0, length));
}

function readVersion1(bytes: Buffer): ReadResult {
  const at = bytes.subarray(0, maxVersion1Bytes).indexOf("\r\n");
  if (at < 0 && bytes.length >= maxVersion1Bytes) throw new Error("the line is too long");
  if (at < 0) return { kind: "more" };
  const [, family = "", source = ""] = bytes.subarray(0, at).toString("latin1").split(" ");
  const version = family === "TCP4" ? 4 : family === "TCP6" ? 6 : undefined;
  if (version !== undefined && isIP(source) !== version) throw new Error("the source is not an address");
  return { kind: "header", bytes: at + 2, address: version === undefined ? undefined : source };
}

function readVersion2(bytes: Buffer): ReadResult {
  const [command = 0, family = 0] = [bytes[12], bytes[13]];
  const length = bytes.readUInt16BE(14);
  if (command >> 4 !== 2 || length > maxVersion2BodyBytes) throw new Error("the header's version is not supported");
  if (bytes.length < version2HeadBytes + length) return { kind: "more" };
  const rest = bytes.subarray(version2HeadBytes, version2HeadBytes + length);
  // Command 0 (LOCAL) is a connection of the proxy itself, such as a health check.
  const isLocal = (command & 15) === 0;
  const version = family >> 4 === 1 ? 4 : family >> 4 === 2 ? 6 : undefined;
  if (!isLocal && version !== undefined && rest.length < (version === 4 ? 12 : 36))
    throw new Error("the header is truncated");
  const address = isLocal ? undefined : version === 4 ? ipv4Of(rest) : version === 6 ? ipv6Of(rest) : undefined;
  return { kind: "header", bytes: version2HeadBytes + length, address };
}

const ipv4Of = (rest: Buffer) => [...rest.subarray(0, 4)].join(".");

function ipv6Of(rest: Buffer): string {
  return Array.from({ length: 8 }, (_, at) => rest.readUInt16BE(at * 2).toString(16)).join(":");
}
