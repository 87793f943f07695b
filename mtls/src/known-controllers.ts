import { join } from "node:path";
import { readIfThere, writeDurably } from "@holdfast/common/durable-file.ts";

/**
 * Addresses of controllers, from configuration, enrollment and messages of controllers. They are stored on disk for the
 * case that all controllers have moved.
 */
export interface KnownControllers {
  load(): Promise<void>;
  learn(addresses: readonly string[]): void;
  /** Stores the addresses that a controller reported; resolves when they are on disk. */
  keep(addresses: readonly string[]): Promise<void>;
  /** The next address in turn; throws if there is none. */
  next(): string;
}

const addressesMax = 20;

export function createKnownControllers(stateDir: string, configured: readonly string[]): KnownControllers {
  const path = join(stateDir, "controllers.json");
  let current: string[] = [...configured];
  let nextIndex = 0;

  function learn(addresses: readonly string[]): void {
    current = [...new Set([...addresses, ...current])].slice(0, addressesMax);
  }

  return {
    learn,
    async load() {
      const stored = await readIfThere(path);
      if (stored !== undefined) learn(JSON.parse(stored.toString("utf8")) as string[]);
    },
    async keep(addresses) {
      if (addresses.every((address) => current.includes(address))) return;
      learn(addresses);
      await writeDurably(path, JSON.stringify(addresses));
    },
    next() {
      const address = current[nextIndex++ % Math.max(current.length, 1)];
      if (address === undefined) throw new Error("no controller address is known");
      return address;
    },
  };
}
