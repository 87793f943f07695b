import { connect, createServer, type Socket } from "node:net";
import { listenAt } from "@holdfast/common/open-listeners.ts";

/** A listener of this machine that forwards connections to another member. */
export interface PeerRelay {
  readonly address: string;
  readonly port: number;
  close(): void;
}

/** A copy has one connection for its commands and several for the data. */
const connectionLimit = 32;

/**
 * Opens a relay to a member, whose front admits only the addresses of members. The clone plugin has no setting for the
 * local address of its connections, and the system may choose another address of the machine.
 */
export async function openPeerRelay(
  localAddress: string,
  { address, port }: { readonly address: string; readonly port: number },
): Promise<PeerRelay> {
  const open = new Set<Socket>();
  const add = (socket: Socket) => {
    open.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => open.delete(socket));
  };
  const server = createServer((client) => {
    const peer = connect({ host: address, port, localAddress });
    for (const [from, to] of [
      [client, peer],
      [peer, client],
    ] as const) {
      add(from);
      from.pipe(to);
      from.once("close", () => to.destroy());
    }
  });
  server.maxConnections = connectionLimit;
  const host = "127.0.0.1";
  return {
    address: host,
    port: await listenAt(server, { host, port: 0 }),
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
