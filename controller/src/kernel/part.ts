/**
 * A typed value that systems share, such as the quotas: one system provides it, others use it. It is declared beside
 * its type, by the group that owns the type.
 */
export interface Part<T> extends Usable<T> {
  /** The value, for the system that provides it. */
  of(value: T): Contribution;
}

/** Anything that `use` reads: a part, or a contribution point. `controller` identifies the controller's assembly. */
export interface Usable<T> {
  readonly name: string;
  /** Undefined until a system of the controller has provided it. */
  read(controller: object): { readonly value: T } | undefined;
}

/** A value of a part or of a contribution point, not yet attached to a controller. */
export interface Contribution {
  readonly to: Usable<unknown>;
  /** Throws with the names of both systems if another system has provided the value. */
  add(controller: object, system: string): void;
}

/** `name` is the part's name in errors, such as "quotas". */
export function definePart<T>(name: string): Part<T> {
  /** Values by controller, since tests start several controllers in one process. */
  const values = new WeakMap<object, { readonly value: T; readonly system: string }>();
  const part: Part<T> = {
    name,
    read: (controller) => values.get(controller),
    of: (value) => ({
      to: part,
      add(controller, system) {
        const other = values.get(controller);
        if (other !== undefined) throw new Error(`systems "${other.system}" and "${system}" both provide "${name}"`);
        values.set(controller, { value, system });
      },
    }),
  };
  return part;
}
