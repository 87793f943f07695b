import type { Contribution, Usable } from "./part.ts";

/**
 * A point to which any number of systems contribute values of one type, such as the sources of network policy. It is
 * declared beside the type, by the group that consumes the values, so that this group names none of the contributors.
 */
export interface ContributionPoint<T> extends Usable<readonly T[]> {
  /** Values, for a system that contributes them. */
  of(...values: readonly T[]): Contribution;
}

/** `name` is the words for it in errors, such as "network policies"; two values with the same key are refused. */
export function contributionPoint<T>(
  name: string,
  { key }: { readonly key: (value: T) => string },
): ContributionPoint<T> {
  /** By controller, values and contributing systems by key. */
  const contributed = new WeakMap<object, Map<string, { readonly value: T; readonly system: string }>>();
  const point: ContributionPoint<T> = {
    name,
    read: (controller) => ({ value: Array.from(contributed.get(controller)?.values() ?? [], ({ value }) => value) }),
    of: (...values) => ({
      to: point,
      add(controller, system) {
        const all = contributed.get(controller) ?? new Map<string, { readonly value: T; readonly system: string }>();
        contributed.set(controller, all);
        for (const value of values) {
          const other = all.get(key(value));
          if (other !== undefined)
            throw new Error(`systems "${other.system}" and "${system}" both contribute "${key(value)}" to "${name}"`);
          all.set(key(value), { value, system });
        }
      },
    }),
  };
  return point;
}
