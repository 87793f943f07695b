import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A port that a test occupies, so that its program cannot start. */
export interface OccupiedPort {
  release(): Promise<void>;
}

/** Listens on a port as soon as it is free; until then calls `free`, which kills the process that listens there. */
export async function occupyPort(port: number, free: () => void, address = "127.0.0.1"): Promise<OccupiedPort> {
  for (;;) {
    free();
    const server = await listen(port, address);
    if (server !== undefined) return { release: () => new Promise((resolve) => server.close(() => resolve())) };
    await sleep(2);
  }
}

function listen(port: number, address: string): Promise<Server | undefined> {
  // Connections are closed immediately.
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(undefined);
      else reject(error);
    });
    server.listen(port, address, () => resolve(server));
  });
}
