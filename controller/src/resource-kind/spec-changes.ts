import { isDeepStrictEqual } from "node:util";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { SpecChange, ResourceSpec } from "./resource-kind.ts";

/** Differences of two specs, sorted by path. Members of objects have separate paths, such as `env.KEY`. */
export function specChanges(before: ResourceSpec, after: ResourceSpec, prefix = ""): readonly SpecChange[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
  return names.flatMap((name): readonly SpecChange[] => {
    const [old, now] = [lookUp(before, name), lookUp(after, name)];
    if (isDeepStrictEqual(old, now)) return [];
    const path = `${prefix}${name}`;
    if (isPlain(old) && isPlain(now)) return specChanges(old, now, `${path}.`);
    return [{ path, before: old, after: now }];
  });
}

function isPlain(value: unknown): value is ResourceSpec {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
