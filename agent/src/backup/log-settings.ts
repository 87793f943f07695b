import type { LogSettings } from "@holdfast/common/backup/log-object.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { LogFacet } from "../engines/backup-facet.ts";

/** Maximum that fits in the header of a log object. */
const maxSettings = 12;

type Values = LogSettings["values"];

/**
 * Adds the settings that apply from position `from` on. Beyond the maximum, the two oldest entries are merged
 * into one with the larger value of each.
 */
export function settingsWith(all: readonly LogSettings[], from: string, values: Values): readonly LogSettings[] {
  const last = all.at(-1);
  if (last !== undefined && isSame(last.values, values)) return all;
  const [first, second, ...rest] = [...all, { from, values }];
  if (first === undefined || second === undefined || rest.length < maxSettings - 1) return [...all, { from, values }];
  return [{ from: first.from, values: greatest(first.values, second.values) }, ...rest];
}

/** The settings that apply to log after a position. */
export function settingsFrom(
  all: readonly LogSettings[],
  position: string,
  log: Pick<LogFacet, "distance"> | undefined,
): readonly LogSettings[] {
  return all.filter((_, index) => {
    const next = all[index + 1];
    return next === undefined || log === undefined || log.distance(position, next.from) > 0;
  });
}

function isSame(first: Values, second: Values): boolean {
  const names = [...new Set([...Object.keys(first), ...Object.keys(second)])];
  return names.every((name) => lookUp(first, name) === lookUp(second, name));
}

function greatest(first: Values, second: Values): Values {
  const names = [...new Set([...Object.keys(first), ...Object.keys(second)])];
  return Object.fromEntries(names.map((name) => [name, Math.max(lookUp(first, name) ?? 0, lookUp(second, name) ?? 0)]));
}
