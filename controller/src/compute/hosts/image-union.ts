import type { ImageFacts } from "../compute-provider.ts";

/** Pure: an engine version is there when one host has it; else the reason that was given first stands. */
export function unionOf(all: Iterable<ImageFacts>): ImageFacts[] {
  const union = new Map<string, ImageFacts>();
  for (const facts of all) {
    const key = `${facts.engine} ${facts.version}`;
    const known = union.get(key);
    if (known === undefined || (!known.available && facts.available)) union.set(key, facts);
  }
  return [...union.values()];
}
