import { createSocket } from "node:dgram";
import { isIPv6 } from "node:net";
import type { Log } from "@holdfast/common/log.ts";
import type { SourceRate } from "./source-rate.ts";

export interface UdpServer {
  readonly port: number;
  close(): Promise<void>;
}

export interface UdpServerDeps {
  readonly host: string;
  readonly port: number;
  readonly answer: (query: Buffer) => Buffer | undefined;
  readonly rate: SourceRate;
  readonly log: Log;
}

/** Answers each datagram, as often as its source may ask. */
export async function startUdpServer({ host, port, answer, rate, log }: UdpServerDeps): Promise<UdpServer> {
  const socket = createSocket({ type: isIPv6(host) ? "udp6" : "udp4", recvBufferSize: 1 << 20 });
  socket.on("message", (query, peer) => {
    // Port 0 cannot be answered, and sending there throws.
    if (peer.port === 0) return;
    const verdict = rate.admit(peer.address);
    if (verdict === "drop") return;
    const response = answer(query);
    if (response === undefined) return;
    const sent = verdict === "answer" ? response : truncated(response);
    socket.send(sent, peer.port, peer.address, (error) => {
      if (error) log.debug("answer not sent", { error: error.message });
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

/** Header only, with the bit that says: ask over TCP. */
function truncated(response: Buffer): Buffer {
  const header = Buffer.from(response.subarray(0, 12));
  header.writeUInt16BE(header.readUInt16BE(2) | 0x0200, 2);
  header.fill(0, 4);
  return header;
}
