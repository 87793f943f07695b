import { join } from "node:path";
import { readIfThere, writeDurably } from "@holdfast/common/durable-file.ts";

/** Where controllers are, as enrollment, welcomes and goodbyes told; kept on disk for the time when all of them moved. */
export interface KnownControllers {
  load(): Promise<void>;
  learn(addresses: readonly string[]): void;
  /** What a controller says of its fleet; resolves when it is kept. */
  keep(addresses: readonly string[]): Promise<void>;
  /** The one whose turn it is; throws when none is known. */
  next(): string;
}

const most = 20;

export function createKnownControllers(stateDir: string, configured: readonly string[]): KnownControllers {
  const path = join(stateDir, "controllers.json");
  let known: string[] = [...configured];
  let turn = 0;

  function learn(addresses: readonly string[]): void {
    known = [...new Set([...addresses, ...known])].slice(0, most);
  }

  return {
    learn,
    async load() {
      const stored = await readIfThere(path);
      if (stored !== undefined) learn(JSON.parse(stored.toString("utf8")) as string[]);
    },
    async keep(addresses) {
      if (addresses.every((address) => known.includes(address))) return;
      learn(addresses);
      await writeDurably(path, JSON.stringify(addresses));
    },
    next() {
      const address = known[turn++ % Math.max(known.length, 1)];
      if (address === undefined) throw new Error("no controller is known");
      return address;
    },
  };
}
