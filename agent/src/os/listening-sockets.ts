import { createSocket } from "node:dgram";
import { open } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { hasCode } from "@holdfast/common/system-error.ts";

/** A TCP socket of this machine's network that waits for connections. */
export interface ListeningSocket {
  /** As the kernel has it; `0.0.0.0` and `::` are every address. */
  readonly address: string;
  readonly port: number;
  /** User who made it. */
  readonly uid: number;
}

const lists = { ipv4: "/proc/net/tcp", ipv6: "/proc/net/tcp6" } as const;

/**
 * Every socket of these families that listens, as the kernel lists them: nobody's log, queue or count of sessions notices that
 * it is asked. Undefined where there is no such list. A family costs some 5 ms of CPU, whatever it has: the kernel goes
 * through the host's whole table of sessions.
 */
export async function listeningSockets(
  families: readonly (keyof typeof lists)[] = ["ipv4", "ipv6"],
): Promise<ListeningSocket[] | undefined> {
  const texts = await Promise.all(families.map((family) => readListening(lists[family])));
  // Without IPv6 there is no list of its sockets.
  return texts.every((text) => text === undefined) ? undefined : texts.flatMap((text) => listeningIn(text ?? ""));
}

/** The list up to the first chunk with a socket that does not listen: those that do come first, and sessions are many. */
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

/** Pure: those that listen, of the text of /proc/net/tcp or tcp6 (proc(5)). */
export function listeningIn(text: string): ListeningSocket[] {
  return [...text.matchAll(row)]
    .filter(([, , , state]) => state === listens)
    .map(([, address = "", port = "", , uid]) => ({
      address: addressOf(address),
      port: Number.parseInt(port, 16),
      uid: Number(uid),
    }));
}

/** Words of four bytes in the order of the processor, which is the reverse of the address's on all that Node runs on. */
function addressOf(hex: string): string {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => [...Buffer.from(word, "hex").reverse()]);
  if (bytes.length === 4) return bytes.join(".");
  const groups = bytes.flatMap((byte, at) => (at % 2 === 0 ? [((byte << 8) | (bytes[at + 1] ?? 0)).toString(16)] : []));
  return canonical(groups.join(":"));
}

/** Pure: one text for one address, however it was written. */
export function canonical(address: string): string {
  return isIPv6(address) ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;
}

/** Can a program of this machine bind the address? Nothing can come to the port that this is tried with. */
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
