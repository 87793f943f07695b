import type { ImageFacts } from "../compute-provider.ts";

/**
 * Engine versions of all hosts. A version is available if one host has it; otherwise the first reason counts.
 * Image ids are omitted, because they differ between hosts.
 */
export function unionOf(all: Iterable<ImageFacts>): ImageFacts[] {
  const union = new Map<string, ImageFacts>();
  for (const { engine, version, available, reason } of all) {
    const key = `${engine} ${version}`;
    const found = union.get(key);
    if (found === undefined || (!found.available && available))
      union.set(key, { engine, version, available, ...(reason !== undefined && { reason }) });
  }
  return [...union.values()];
}
