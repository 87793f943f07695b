import { lookUp } from "@holdfast/common/look-up.ts";
type Parameters = Readonly<Record<string, string>>;

/** Which values the engine started with last, and which it would not start with. */
export interface ParameterHistory {
  readonly lastGood: Parameters;
  /** By name; `value` null when taking the parameter away was what failed. */
  readonly rejected: Readonly<Record<string, { readonly value: string | null; readonly reason: string }>>;
}

export const noHistory: ParameterHistory = { lastGood: {}, rejected: {} };

/** What to run with: what is wanted, but the last good value of each parameter whose wanted one was rejected. */
export function effectiveParameters(
  wanted: Parameters,
  { lastGood, rejected }: ParameterHistory,
): Record<string, string> {
  const effective: Record<string, string> = { ...wanted };
  for (const [name, { value }] of Object.entries(rejected)) {
    if ((lookUp(wanted, name) ?? null) !== value) continue;
    const good = lookUp(lastGood, name);
    if (good === undefined) delete effective[name];
    else effective[name] = good;
  }
  return effective;
}

/** Rejections that still say something about what is wanted: a new value gets a new chance. */
export function currentRejections(wanted: Parameters, history: ParameterHistory): ParameterHistory["rejected"] {
  return Object.fromEntries(
    Object.entries(history.rejected).filter(([name, { value }]) => (lookUp(wanted, name) ?? null) === value),
  );
}

/**
 * After a start with `tried` failed in these words: the changes since the last good start are to blame, or those among
 * them that the words name. Undefined when nothing changed: then it is something else.
 */
export function rejectChanges(
  tried: Parameters,
  history: ParameterHistory,
  { message, parameter }: { readonly message: string; readonly parameter: string | undefined },
): ParameterHistory | undefined {
  const names = new Set([...Object.keys(tried), ...Object.keys(history.lastGood)]);
  const changed = [...names].filter((name) => lookUp(tried, name) !== lookUp(history.lastGood, name));
  if (changed.length === 0) return undefined;
  // work_mem is no word of a refusal of maintenance_work_mem.
  const words = new Set(message.split(/[^\w.-]+/).map((word) => word.replace(/[.-]+$/, "")));
  const named = changed.filter((name) => name === parameter || words.has(name));
  const blamed = named.length > 0 ? named : changed;
  const rejected = Object.fromEntries(
    blamed.map((name) => [name, { value: lookUp(tried, name) ?? null, reason: message }]),
  );
  return { lastGood: history.lastGood, rejected: { ...history.rejected, ...rejected } };
}
