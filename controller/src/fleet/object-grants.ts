import type { MintObjectUrlsRequest, ObjectUse } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { contributionPoint } from "#kernel/contribution-point.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { MachineObject } from "./machine/machine.ts";

/** A prefix of object keys that a machine may use, with the permitted HTTP methods. */
export interface ObjectGrant {
  readonly prefix: string;
  readonly methods: ReadonlySet<string>;
}

/** The purpose for which a machine uses objects, such as a backup. */
export type GrantScope = MintObjectUrlsRequest["scope"];

/** Grants of objects to the machines of one kind of owner. */
export interface ObjectGrantSource {
  /** Name of the owner's kind. */
  readonly ownerKind: string;
  /** Objects that a machine of the owner may use now for the purpose; empty for none. */
  grantsOf(machineId: string, ownerId: string, scope: GrantScope): readonly ObjectGrant[];
}

export const objectGrants = contributionPoint<ObjectGrantSource>("object grants", {
  key: ({ ownerKind }) => ownerKind,
});

/** Objects that a machine may use for a purpose, by its owner; empty for a machine without an owner. */
export function grantsOf(
  machineId: string,
  scope: GrantScope,
  {
    machines,
    sources,
  }: {
    readonly machines: Pick<Collection<MachineObject>, "get">;
    readonly sources: readonly ObjectGrantSource[];
  },
): readonly ObjectGrant[] {
  const owner = machines.get(machineId)?.object.spec.owner;
  const source = sources.find(({ ownerKind }) => ownerKind === owner?.kind);
  return owner == null || source === undefined ? [] : source.grantsOf(machineId, owner.id, scope);
}

/** The first use that no grant covers; undefined if all are covered. */
export function firstUncovered(grants: readonly ObjectGrant[], uses: readonly ObjectUse[]): ObjectUse | undefined {
  return uses.find(
    ({ method, key }) => !grants.some(({ prefix, methods }) => methods.has(method) && key.startsWith(prefix)),
  );
}
