import type { DrainResult, DrainedMachine, MachineOwner, OwnerDescription, OwnerKind } from "./owner-kind.ts";

/**
 * The owners of machines of all kinds. An owner that no system handles, such as an owner of a removed system, blocks a
 * drain.
 */
export interface Owners {
  /** Name and organization of the owner; undefined if it does not exist. */
  describe(owner: MachineOwner): OwnerDescription | undefined;
  /**
   * Description of the owner for operators, such as `service orders`; with the id in place of the name if it is absent.
   */
  textOf(owner: MachineOwner): string;
  /** The remedy that frees a machine of the owner, such as `Delete the service`. */
  remedyOf(owner: MachineOwner): string;
  /** The remedies for several owners, by kind and with their ids, such as `Delete the services a, b first.` */
  remediesOf(owners: readonly MachineOwner[]): string;
  isReplaceable(owner: MachineOwner): boolean;
  onHostLost(owner: MachineOwner): "retains" | "deletes";
  drain(owner: MachineOwner, machine: DrainedMachine): DrainResult;
}

/** Maximum number of owners of one kind in a text. */
const namedOwnersMax = 20;

export function createOwners(kinds: readonly OwnerKind[]): Owners {
  const byKind = new Map(kinds.map((each) => [each.kind, each]));
  const kindOf = ({ kind }: Pick<MachineOwner, "kind">): OwnerKind => byKind.get(kind) ?? unhandled(kind);
  return {
    describe: (owner) => kindOf(owner).describe(owner.id),
    textOf(owner) {
      const { noun, describe } = kindOf(owner);
      return `${noun} ${describe(owner.id)?.name ?? owner.id}`;
    },
    remedyOf(owner) {
      const { remedy, noun } = kindOf(owner);
      return `${remedy} the ${noun}`;
    },
    remediesOf(owners) {
      const groups = Map.groupBy(owners, ({ kind }) => kind);
      return [...groups]
        .map(([kind, each]) => {
          const { remedy, noun } = kindOf({ kind });
          return `${remedy} the ${noun}s ${nameList(each.map(({ id }) => id))} first.`;
        })
        .join(" ");
    },
    isReplaceable: (owner) => kindOf(owner).isReplaceable(owner.id),
    onHostLost: (owner) => kindOf(owner).onHostLost(owner.id),
    drain: (owner, machine) => kindOf(owner).drain(owner.id, machine),
  };
}

/** The first of these names, and the number of the others. */
export function nameList(names: readonly string[]): string {
  const more = names.length > namedOwnersMax ? ` and ${names.length - namedOwnersMax} more` : "";
  return `${names.slice(0, namedOwnersMax).join(", ")}${more}`;
}

/** The kind of an owner whose system is absent. Its machines remain, since their data may be valuable. */
function unhandled(kind: string): OwnerKind {
  return {
    kind,
    noun: kind,
    remedy: "Delete",
    describe: () => undefined,
    isReplaceable: () => false,
    onHostLost: () => "retains",
    drain: () => ({
      outcome: "blocks",
      reason: `No system of the controllers handles the ${kind} that owns the machine.`,
    }),
  };
}
