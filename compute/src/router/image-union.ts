import type { ImageFacts } from "../compute-provider.ts";

/**
 * Pure: an engine version is there when one host has it; else the reason that was given first stands. Out of which image is
 * left out: that is another matter on each host.
 */
export function unionOf(all: Iterable<ImageFacts>): ImageFacts[] {
  const union = new Map<string, ImageFacts>();
  for (const { engine, version, available, reason } of all) {
    const key = `${engine} ${version}`;
    const known = union.get(key);
    if (known === undefined || (!known.available && available))
      union.set(key, { engine, version, available, ...(reason !== undefined && { reason }) });
  }
  return [...union.values()];
}
