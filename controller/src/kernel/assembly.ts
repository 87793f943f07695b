import type { Contribution, Usable } from "./part.ts";

/** Reads a part or the values of a contribution point; throws if no system has provided the part yet. */
export type Use = <T>(part: Usable<T>) => T;

/**
 * Returns a function that reads a part once systems are open. A part that no system provides fails the start of the
 * controller.
 */
export type UseLater = <T>(part: Usable<T>) => () => T;

/** Name of a system, and what it provides and declares. */
export interface Provider {
  readonly name: string;
  /** Parts that the system provides when it opens. */
  readonly provides?: readonly Usable<unknown>[];
  /** Values that need no kernel. */
  readonly declares?: readonly Contribution[];
}

/**
 * The parts and contributions of one controller. Systems contribute first, all of them, and open afterwards in the
 * order of their list: a contribution uses parts later, and an open system uses the parts of the systems before it.
 */
export interface Assembly {
  /** Adds values of a system; throws if another system has provided them. */
  add(system: string, contributions: readonly Contribution[]): void;
  /** Adds the values that a system provides when it opens; throws unless they match its declaration. */
  provide(system: string, contributions: readonly Contribution[]): void;
  useFor(system: string): Use;
  useLaterFor(system: string): UseLater;
  /** Throws if a system uses a part later that no system has provided. */
  complete(): void;
}

/** Throws if two systems have the same name, or declare the same part. */
export function createAssembly(providers: readonly Provider[]): Assembly {
  const providerOf = new Map<Usable<unknown>, string>();
  const declared = new Map<string, readonly Usable<unknown>[]>();
  for (const { name, provides = [] } of providers) {
    if (declared.has(name)) throw new Error(`two systems have the name "${name}"`);
    declared.set(name, provides);
    for (const part of provides) {
      const other = providerOf.get(part);
      if (other !== undefined) throw new Error(`systems "${other}" and "${name}" both provide "${part.name}"`);
      providerOf.set(part, name);
    }
  }
  const later: { readonly system: string; readonly part: Usable<unknown> }[] = [];

  function read<T>(system: string, part: Usable<T>): T {
    const found = part.read(assembly);
    if (found !== undefined) return found.value;
    const provider = providerOf.get(part);
    throw new Error(
      provider === undefined
        ? `system "${system}" uses "${part.name}", which no system provides`
        : `system "${system}" uses "${part.name}" before system "${provider}" provides it: "${provider}" has to open earlier`,
    );
  }

  const assembly: Assembly = {
    add(system, contributions) {
      for (const contribution of contributions) contribution.add(assembly, system);
    },
    provide(system, contributions) {
      const parts = declared.get(system) ?? [];
      for (const { to } of contributions)
        if (!parts.includes(to)) throw new Error(`system "${system}" provides "${to.name}", which it does not declare`);
      assembly.add(system, contributions);
      for (const part of parts)
        if (part.read(assembly) === undefined)
          throw new Error(`system "${system}" declares "${part.name}" and does not provide it`);
    },
    useFor: (system) => (part) => read(system, part),
    useLaterFor: (system) => (part) => {
      later.push({ system, part });
      return () => read(system, part);
    },
    complete() {
      for (const { system, part } of later) read(system, part);
    },
  };
  for (const { name, declares = [] } of providers) assembly.add(name, declares);
  return assembly;
}
