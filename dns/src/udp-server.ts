import { createSocket } from "node:dgram";
import { isIPv6 } from "node:net";
import type { Log } from "@holdfast/common/log.ts";
import type { QueryRateLimit } from "./query-rate-limit.ts";

export interface UdpServer {
  readonly port: number;
  close(): Promise<void>;
}

export interface UdpServerDeps {
  readonly host: string;
  readonly port: number;
  readonly respond: (query: Buffer) => Buffer | undefined;
  readonly rate: QueryRateLimit;
  readonly log: Log;
}

/** Serves datagrams within the rate of their source. */
export async function startUdpServer({ host, port, respond, rate, log }: UdpServerDeps): Promise<UdpServer> {
  const socket = createSocket({ type: isIPv6(host) ? "udp6" : "udp4", recvBufferSize: 1 << 20 });
  socket.on("message", (query, peer) => {
    // A response to port 0 is impossible; sending throws.
    if (peer.port === 0) return;
    const verdict = rate.admit(peer.address);
    if (verdict === "drop") return;
    const response = respond(query);
    if (response === undefined) return;
    const sent = verdict === "answer" ? response : truncated(response);
    socket.send(sent, peer.port, peer.address, (error) => {
      if (error) log.debug("response not sent", { error: error.message });
    });
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.bind(port, host, () => {
      socket.off("error", reject);
      socket.on("error", (error) => log.error("udp socket broke", { error }));
      resolve();
    });
  });
  return {
    port: socket.address().port,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

/** The header with the TC bit, which makes a client retry over TCP. */
function truncated(response: Buffer): Buffer {
  const header = Buffer.from(response.subarray(0, 12));
  header.writeUInt16BE(header.readUInt16BE(2) | 0x0200, 2);
  header.fill(0, 4);
  return header;
}
