import { timingSafeEqual } from "node:crypto";

/** Compares two hashes in constant time; an undefined hash equals nothing and takes as long. */
export function equalHash(stored: string | undefined, presented: string): boolean {
  const expected = stored ?? "0".repeat(presented.length);
  const same = expected.length === presented.length && timingSafeEqual(Buffer.from(expected), Buffer.from(presented));
  return same && stored !== undefined;
}
