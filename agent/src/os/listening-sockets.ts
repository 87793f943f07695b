import { createSocket } from "node:dgram";
import { open } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { hasCode } from "@holdfast/common/system-error.ts";

/** A listening TCP socket in this machine's network namespace. */
export interface ListeningSocket {
  /** Local address, canonical; `0.0.0.0` and `::` are wildcards. */
  readonly address: string;
  readonly port: number;
  /** User who created it. */
  readonly uid: number;
}

const lists = { ipv4: "/proc/net/tcp", ipv6: "/proc/net/tcp6" } as const;

/**
 * Lists the listening sockets of these families from /proc/net. Unlike a connection attempt, this shows in no log,
 * queue or session count. Undefined if the kernel has no such list. A family costs about 5 ms of CPU, since the kernel
 * scans the host's whole table of sockets.
 */
export async function listeningSockets(
  families: readonly (keyof typeof lists)[] = ["ipv4", "ipv6"],
): Promise<ListeningSocket[] | undefined> {
  const texts = await Promise.all(families.map((family) => readListening(lists[family])));
  // Without IPv6 the kernel has no tcp6 list.
  return texts.every((text) => text === undefined) ? undefined : texts.flatMap((text) => listeningIn(text ?? ""));
}

/**
 * Reads the list up to the first chunk with a socket that does not listen: listening ones come first, and there are
 * many others.
 */
async function readListening(path: string): Promise<string | undefined> {
  const file = await open(path).catch((error: unknown) => {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  });
  if (file === undefined) return undefined;
  try {
    let text = "";
    for (;;) {
      const { bytesRead, buffer } = await file.read();
      text += buffer.toString("latin1", 0, bytesRead);
      if (bytesRead === 0 || hasSession(text)) return text;
    }
  } finally {
    await file.close();
  }
}

const listens = "0A";
const row = /^ *\d+: ([0-9A-F]+):([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2})(?: \S+){3} +(\d+)/gm;

function hasSession(text: string): boolean {
  return text.matchAll(row).some(([, , , state]) => state !== listens);
}

/** Parses the listening sockets in the content of /proc/net/tcp or tcp6 (proc(5)). */
export function listeningIn(text: string): ListeningSocket[] {
  return [...text.matchAll(row)]
    .filter(([, , , state]) => state === listens)
    .map(([, address = "", port = "", , uid]) => ({
      address: addressOf(address),
      port: Number.parseInt(port, 16),
      uid: Number(uid),
    }));
}

/** Words of four bytes in host byte order, which is little endian on every platform that Node supports. */
function addressOf(hex: string): string {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => [...Buffer.from(word, "hex").reverse()]);
  if (bytes.length === 4) return bytes.join(".");
  const groups = bytes.flatMap((byte, at) => (at % 2 === 0 ? [((byte << 8) | (bytes[at + 1] ?? 0)).toString(16)] : []));
  return canonical(groups.join(":"));
}

/** Formats an address canonically. */
export function canonical(address: string): string {
  return isIPv6(address) ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;
}

/**
 * True if a program of this machine can bind the address. It is tried with a UDP port of the kernel's choice, which
 * receives nothing.
 */
export function isBindable(address: string): Promise<boolean> {
  const socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
  return new Promise((resolve) => {
    const end = (bindable: boolean) => {
      socket.close();
      resolve(bindable);
    };
    socket.once("error", () => end(false));
    socket.bind({ address, port: 0, exclusive: true }, () => end(true));
  });
}
