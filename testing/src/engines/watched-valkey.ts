import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Instance } from "@holdfast/agent/engines/instance.ts";
import { engineSocket } from "@holdfast/agent/engines/valkey/layout.ts";

/** A Valkey whose platform sessions pass through the test. */
export interface WatchedValkey {
  /** The instance, reached through the test. */
  readonly instance: Instance;
  /** Number of the platform's commands that the engine rejected because a script keeps it busy. */
  readonly refusals: number;
  close(): Promise<void>;
}

export async function watchValkey(instance: Instance): Promise<WatchedValkey> {
  const run = await mkdtemp(join(tmpdir(), "watched-"));
  const watched = { ...instance, paths: { ...instance.paths, run } };
  const sockets = new Set<Socket>();
  let refusals = 0;
  const server = createServer((client) => {
    const engine = connect(engineSocket(instance));
    for (const [from, to] of [
      [client, engine],
      [engine, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
    engine.on("data", (bytes: Buffer) => (refusals += bytes.toString("latin1").split("-BUSY ").length - 1));
  });
  await new Promise<void>((resolve) => server.listen(engineSocket(watched), resolve));
  return {
    instance: watched,
    get refusals() {
      return refusals;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await rm(run, { recursive: true, force: true });
    },
  };
}
