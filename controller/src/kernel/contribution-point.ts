import type { Contribution, Usable } from "./part.ts";

/**
 * A point to which any number of systems contribute values of one type, such as the sources of network policy. It is
 * declared beside the type, by the group that consumes the values, so that this group depends on none of the
 * contributors.
 */
export interface ContributionPoint<T> extends Usable<readonly T[]> {
  /** Values, for a system that contributes them. */
  of(...values: readonly T[]): Contribution;
}

/** `name` is the point's name in errors, such as "network policies"; two values with the same key are refused. */
export function contributionPoint<T>(
  name: string,
  { key }: { readonly key: (value: T) => string },
): ContributionPoint<T> {
  const all = new WeakMap<object, Contributed<T>>();
  const contributedTo = (controller: object): Contributed<T> => {
    const contributed = all.get(controller) ?? { values: new Map(), wasRead: false };
    all.set(controller, contributed);
    return contributed;
  };
  const point: ContributionPoint<T> = {
    name,
    read(controller) {
      const contributed = contributedTo(controller);
      contributed.wasRead = true;
      return { value: Array.from(contributed.values.values(), ({ value }) => value) };
    },
    of: (...values) => ({
      to: point,
      add(controller, system) {
        const contributed = contributedTo(controller);
        if (contributed.wasRead)
          throw new Error(`system "${system}" contributes to "${name}" after it was read: put the value in "declares"`);
        for (const value of values) {
          const other = contributed.values.get(key(value));
          if (other !== undefined)
            throw new Error(`systems "${other.system}" and "${system}" both contribute "${key(value)}" to "${name}"`);
          contributed.values.set(key(value), { value, system });
        }
      },
    }),
  };
  return point;
}

/** The contributions to one point in one controller. */
interface Contributed<T> {
  /** Values and contributing systems by key. */
  readonly values: Map<string, { readonly value: T; readonly system: string }>;
  /** True after the first read: a later value would be missing in its result. */
  wasRead: boolean;
}
