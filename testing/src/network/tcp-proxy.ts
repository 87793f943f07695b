import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A connection that a test can break: all traffic to the target passes through it. */
export interface TcpProxy {
  readonly port: number;
  /** Resets every connection and refuses new ones. */
  cut(): void;
  /** Silently stops forwarding on the current connections; new ones work. */
  stall(): void;
  /** Forwards what the client sends, and drops the responses. */
  loseResponses(): void;
  heal(): void;
  close(): void;
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let mode: "open" | "cut" = "open";
  const server = createServer((client) => {
    if (mode === "cut") return client.resetAndDestroy();
    const target = connect(targetPort, "127.0.0.1");
    const pair = [client, target] as const;
    pairs.add(pair);
    for (const [from, to] of [pair, [target, client] as const]) {
      from.on("error", () => to.destroy());
      from.on("close", () => {
        pairs.delete(pair);
        to.destroy();
      });
      from.pipe(to);
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");

  return {
    port: address.port,
    cut() {
      mode = "cut";
      for (const [client] of pairs) client.resetAndDestroy();
    },
    stall() {
      for (const [client, target] of pairs) for (const socket of [client, target]) socket.unpipe().pause();
    },
    loseResponses() {
      for (const [, target] of pairs) target.unpipe().resume();
    },
    heal() {
      mode = "open";
      for (const [client, target] of pairs) {
        // A second pipe would forward everything twice.
        client.unpipe().pipe(target);
        target.unpipe().pipe(client);
      }
    },
    close() {
      mode = "cut";
      for (const [client] of pairs) client.destroy();
      server.close();
    },
  };
}
