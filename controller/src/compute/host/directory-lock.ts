import { createHash } from "node:crypto";
import { connect, createServer } from "node:net";
import { realpathSync } from "node:fs";
import { hasCode } from "@holdfast/common/system-error.ts";

/**
 * Locks between the controllers of one host that share a directory. A lock is an abstract Unix socket that one process
 * listens on: the kernel gives a name to one only, and takes it back when its process ends, however that ends, so no lock
 * is ever stale. Who waits is connected to it and hears its end.
 */
export interface DirectoryLock {
  /** Runs it while nobody else holds the name; waits for that. */
  hold<T>(name: string, signal: AbortSignal, run: () => Promise<T>): Promise<T>;
  /** Runs it if nobody holds the name; undefined when somebody does. */
  tryHold<T>(name: string, run: () => Promise<T>): Promise<T | undefined>;
}

export function createDirectoryLock(directory: string): DirectoryLock {
  const scope = createHash("sha256").update(realpathSync(directory)).digest("hex").slice(0, 32);
  const socketOf = (name: string) => `\0holdfast/${scope}/${name}`;

  async function holding<T>(release: () => void, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } finally {
      release();
    }
  }

  return {
    async hold(name, signal, run) {
      for (;;) {
        signal.throwIfAborted();
        const release = await take(socketOf(name));
        if (release !== undefined) return holding(release, run);
        await released(socketOf(name), signal);
      }
    },
    async tryHold(name, run) {
      const release = await take(socketOf(name));
      return release && holding(release, run);
    },
  };
}

/** Resolves with what gives it back, or undefined when somebody has it. */
function take(socket: string): Promise<(() => void) | undefined> {
  const server = createServer((waiting) => {
    waiting.on("error", () => waiting.destroy());
    waiting.unref();
    closing.add(() => waiting.destroy());
  });
  const closing = new Set<() => void>();
  return new Promise((resolve, reject) => {
    server.once("error", (error) => (hasCode(error, "EADDRINUSE") ? resolve(undefined) : reject(error)));
    server.listen(socket, () => {
      server.unref();
      resolve(() => {
        server.close();
        for (const close of closing) close();
      });
    });
  });
}

/** Resolves when the holder let go, ended, or had let go already. */
function released(socket: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const waiting = connect(socket);
    const abort = () => {
      waiting.destroy();
      reject(signal.reason);
    };
    signal.addEventListener("abort", abort, { once: true });
    waiting.on("error", () => waiting.destroy());
    waiting.once("close", () => {
      signal.removeEventListener("abort", abort);
      resolve();
    });
  });
}
