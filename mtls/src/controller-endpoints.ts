import { join } from "node:path";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";

/**
 * Addresses of controllers, from configuration, enrollment and messages of controllers. They are stored on disk for the
 * case that all controllers have moved.
 */
export interface ControllerEndpoints {
  load(): Promise<void>;
  add(addresses: readonly string[]): void;
  /** Stores the addresses that a controller reported; resolves when they are on disk. */
  save(addresses: readonly string[]): Promise<void>;
  /** The next address in turn; throws if there is none. */
  next(): string;
}

const addressesMax = 20;

export function createControllerEndpoints(stateDir: string, configured: readonly string[]): ControllerEndpoints {
  const path = join(stateDir, "controllers.json");
  let current: string[] = [...configured];
  let nextIndex = 0;

  function add(addresses: readonly string[]): void {
    current = [...new Set([...addresses, ...current])].slice(0, addressesMax);
  }

  return {
    add,
    async load() {
      const stored = await readIfExists(path);
      if (stored !== undefined) add(JSON.parse(stored.toString("utf8")) as string[]);
    },
    async save(addresses) {
      if (addresses.every((address) => current.includes(address))) return;
      add(addresses);
      await writeDurably(path, JSON.stringify(addresses));
    },
    next() {
      const address = current[nextIndex++ % Math.max(current.length, 1)];
      if (address === undefined) throw new Error("no controller address is known");
      return address;
    },
  };
}
