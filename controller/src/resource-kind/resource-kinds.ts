import type { ResourceKind, ResourceSpec } from "./resource-kind.ts";

/** A kind as a descriptor names it, with what that name implies. */
export interface NamedKind {
  readonly kind: ResourceKind;
  readonly implied: ResourceSpec;
}

/** The kinds that are registered here, by the names that descriptors have for them. */
export interface ResourceKinds {
  /** Undefined for a name that is none, and for one of a kind that is still to come. */
  named(name: string): NamedKind | undefined;
  /** Throws for a kind that is not registered: what is stored was checked when it was written. */
  of(kind: string): ResourceKind;
  isToCome(name: string): boolean;
  readonly all: readonly ResourceKind[];
  /** Names with their kinds, in the order of registration. */
  readonly names: ReadonlyMap<string, NamedKind>;
  /** Names of kinds that this version knows and does not have. */
  readonly toCome: readonly string[];
}

/** Kinds of the specification (3, Project descriptor; Stack). */
const knownKinds = ["app", "files", "inference"] as const;

/** Throws when two kinds have one name. */
export function createResourceKinds(all: readonly ResourceKind[]): ResourceKinds {
  const names = new Map<string, NamedKind>();
  for (const kind of all) {
    for (const [name, implied] of [[kind.kind, {}] as const, ...Object.entries(kind.aliases)]) {
      if (names.has(name)) throw new Error(`two kinds of resources are named ${name}`);
      names.set(name, { kind, implied });
    }
  }
  const toCome = knownKinds.filter((name) => !names.has(name));
  return {
    named: (name) => names.get(name),
    of(kind) {
      const found = all.find((each) => each.kind === kind);
      if (found === undefined) throw new Error(`no kind of resource is named ${kind}`);
      return found;
    },
    isToCome: (name) => toCome.some((each) => each === name),
    all,
    names,
    toCome,
  };
}
