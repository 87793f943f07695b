import { createServer, type Server } from "node:net";
import { waitUntil } from "../wait-until.ts";

/** A port that a test occupies, so that its program cannot start. */
export interface OccupiedPort {
  release(): Promise<void>;
}

/** Listens on a port as soon as it is free; until then calls `free`, which kills the process that listens there. */
export async function occupyPort(port: number, free: () => void, address = "127.0.0.1"): Promise<OccupiedPort> {
  const occupy = () => {
    free();
    return listen(port, address);
  };
  const server = await waitUntil(`port ${port} is free`, occupy, { everyMs: 2 });
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
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
