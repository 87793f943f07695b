import type { LogSettings } from "@holdfast/common/backup/log-object.ts";
import type { LogFacet } from "../engines/backup-facet.ts";

/** A header of a log object has room for so many. */
const mostSettings = 12;

type Values = LogSettings["values"];

/**
 * Pure: the settings of a log of which what comes at `from` is written under `values`. Where there are too many, the oldest ones
 * become one that has the greatest of each.
 */
export function settingsWith(all: readonly LogSettings[], from: string, values: Values): readonly LogSettings[] {
  const last = all.at(-1);
  if (last !== undefined && isSame(last.values, values)) return all;
  const [first, second, ...rest] = [...all, { from, values }];
  if (first === undefined || second === undefined || rest.length < mostSettings - 1) return [...all, { from, values }];
  return [{ from: first.from, values: greatest(first.values, second.values) }, ...rest];
}

/** Pure: those that log from a position on was written under. */
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

function isSame(some: Values, others: Values): boolean {
  const names = [...new Set([...Object.keys(some), ...Object.keys(others)])];
  return names.every((name) => some[name] === others[name]);
}

function greatest(some: Values, others: Values): Values {
  const names = [...new Set([...Object.keys(some), ...Object.keys(others)])];
  return Object.fromEntries(names.map((name) => [name, Math.max(some[name] ?? 0, others[name] ?? 0)]));
}
