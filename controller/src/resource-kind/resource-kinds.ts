import type { ResourceKind, ResourceSpec } from "./resource-kind.ts";

/** A kind and the members of its spec that one of its names implies. */
export interface NamedKind {
  readonly kind: ResourceKind;
  readonly implied: ResourceSpec;
}

/** The registered kinds, by their names in descriptors. */
export interface ResourceKinds {
  /** The kind with this name or alias; undefined for a name without a registered kind. */
  named(name: string): NamedKind | undefined;
  /**
   * The kind with this name. Throws for an unregistered kind, because stored kinds were checked when they were written.
   */
  of(kind: string): ResourceKind;
  /** True for a name of the specification that no registered kind has. */
  isPlanned(name: string): boolean;
  readonly all: readonly ResourceKind[];
  /** Names with their kinds, in the order of registration. */
  readonly names: ReadonlyMap<string, NamedKind>;
  /** Names of the specification that no registered kind has; a descriptor with one is refused. */
  readonly planned: readonly string[];
}

/** Names of the specification (3, Project descriptor; Stack) in addition to databases and their aliases. */
const specifiedKinds = ["app", "files", "inference"] as const;

/** Throws if two kinds have the same name. */
export function createResourceKinds(all: readonly ResourceKind[]): ResourceKinds {
  const names = new Map<string, NamedKind>();
  for (const kind of all) {
    for (const [name, implied] of [[kind.kind, {}] as const, ...Object.entries(kind.aliases)]) {
      if (names.has(name)) throw new Error(`two kinds of resources are named ${name}`);
      names.set(name, { kind, implied });
    }
  }
  const planned = specifiedKinds.filter((name) => !names.has(name));
  return {
    named: (name) => names.get(name),
    of(kind) {
      const found = all.find((each) => each.kind === kind);
      if (found === undefined) throw new Error(`no kind of resource is named ${kind}`);
      return found;
    },
    isPlanned: (name) => planned.some((each) => each === name),
    all,
    names,
    planned,
  };
}
