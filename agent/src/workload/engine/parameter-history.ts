import { lookUp } from "@holdfast/common/look-up.ts";

type Parameters = Readonly<Record<string, string>>;

/** The parameter values of the last successful start, and those that the engine rejected. */
export interface ParameterHistory {
  readonly lastAccepted: Parameters;
  /** Rejected values by parameter name; `value` is null if the removal of the parameter was rejected. */
  readonly rejected: Readonly<Record<string, { readonly value: string | null; readonly reason: string }>>;
}

export const emptyHistory: ParameterHistory = { lastAccepted: {}, rejected: {} };

/** The requested parameters, except that a rejected one has its last accepted value. */
export function acceptedParameters(
  requested: Parameters,
  { lastAccepted, rejected }: ParameterHistory,
): Record<string, string> {
  const effective: Record<string, string> = { ...requested };
  for (const [name, { value }] of Object.entries(rejected)) {
    if ((lookUp(requested, name) ?? null) !== value) continue;
    const accepted = lookUp(lastAccepted, name);
    if (accepted === undefined) delete effective[name];
    else effective[name] = accepted;
  }
  return effective;
}

/** The rejections of values that are still requested; another value is tried again. */
export function currentRejections(requested: Parameters, history: ParameterHistory): ParameterHistory["rejected"] {
  return Object.fromEntries(
    Object.entries(history.rejected).filter(([name, { value }]) => (lookUp(requested, name) ?? null) === value),
  );
}

/**
 * Rejects the parameters at fault for a failed start: those changed since the last successful start, or the ones among
 * them that the message names. Undefined if nothing changed, so that no parameter is at fault.
 */
export function rejectChanges(
  tried: Parameters,
  history: ParameterHistory,
  { message, parameter }: { readonly message: string; readonly parameter: string | undefined },
): ParameterHistory | undefined {
  const names = new Set([...Object.keys(tried), ...Object.keys(history.lastAccepted)]);
  const changed = [...names].filter((name) => lookUp(tried, name) !== lookUp(history.lastAccepted, name));
  if (changed.length === 0) return undefined;
  // Whole names: a refusal of maintenance_work_mem does not name work_mem.
  const namesInMessage = new Set(message.split(/[^\w.-]+/).map((word) => word.replace(/[.-]+$/, "")));
  const named = changed.filter((name) => name === parameter || namesInMessage.has(name));
  const suspects = named.length > 0 ? named : changed;
  const rejected = Object.fromEntries(
    suspects.map((name) => [name, { value: lookUp(tried, name) ?? null, reason: message }]),
  );
  return { lastAccepted: history.lastAccepted, rejected: { ...history.rejected, ...rejected } };
}
