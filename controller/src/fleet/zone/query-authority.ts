import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { isIPv6 } from "node:net";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { decode, encode } from "dns-packet";

/** Queries an authoritative server (host:port) for a name's A and AAAA records over UDP. Rejects on a timeout. */
export async function queryAddresses(
  server: string,
  name: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string[]> {
  const [v4, v6] = await Promise.all(
    (["A", "AAAA"] as const).map((type) => query(server, name, type, timeoutMs, signal)),
  );
  return [...(v4 ?? []), ...(v6 ?? [])];
}

function query(server: string, name: string, type: "A" | "AAAA", timeoutMs: number, signal: AbortSignal) {
  const { host, port } = endpointOf(server);
  const id = randomInt(65_536);
  const packet = encode({ type: "query", id, questions: [{ type, class: "IN", name }] });
  const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
  return new Promise<string[]>((resolve, reject) => {
    const giveUp = () => reject(new Error("the DNS server did not respond"));
    const timer = setTimeout(giveUp, timeoutMs);
    signal.addEventListener("abort", giveUp, { once: true });
    socket.on("error", reject);
    // A connected socket receives packets of its server only, and gets an error immediately if nothing listens there.
    socket.connect(port, host, () => socket.send(packet));
    socket.on("message", (message) => {
      const addresses = addressesOf(message, id, type);
      if (addresses !== undefined) resolve(addresses);
    });
    socket.on("close", () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
    });
  }).finally(() => socket.close());
}

/** The addresses in an authoritative response to this query; undefined for any other packet. */
function addressesOf(message: Buffer, id: number, type: "A" | "AAAA"): string[] | undefined {
  try {
    const response = decode(message);
    const isConclusive = "rcode" in response && (response.rcode === "NOERROR" || response.rcode === "NXDOMAIN");
    if (response.id !== id || response.type !== "response" || !isConclusive || response.flag_aa !== true)
      return undefined;
    return (response.answers ?? []).flatMap((each) => (each.type === type ? [each.data] : []));
  } catch {
    return undefined;
  }
}
