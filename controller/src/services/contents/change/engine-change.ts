import type { DatabaseUserSpec } from "../user/database-user.ts";
import type { EngineOperationType } from "#operation/operation.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import { defineKind } from "#kernel/store/kind.ts";

/**
 * What an engine is to take of its users and databases. It is there from the request until the outcome is known, and its end
 * is in one transaction with what is kept of a user: so store and engine agree once it is gone. Its operation ends with it, or
 * before it, where the engine could not be asked in time.
 */
export type EngineChangeObject = Resource<EngineChangeSpec, EngineChangeStatus>;

export const engineChangeKind = defineKind<EngineChangeObject>("engine-change", { indexes: [serviceOfChange] });

/** Index: the changes of one service. */
export function serviceOfChange({ spec }: EngineChangeObject): string {
  return spec.serviceId;
}

export interface EngineChangeSpec {
  readonly serviceId: string;
  readonly operationId: string;
  readonly change: EngineChange;
}

export interface EngineChangeStatus {
  /** Which task is the newest; 1 is the first. */
  readonly attempt: number;
  /** What came of an earlier task is not known. */
  readonly isUncertain: boolean;
  /** Its operation is over, and nothing is tried any more; what is left is to ask the engine what it has. */
  readonly isGivenUp: boolean;
}

export type EngineChange = UserChange | DatabaseChange;

export type UserChange =
  | { readonly type: "create_user"; readonly user: DatabaseUserSpec }
  /** The role is that of the engine, once it has told it. */
  | { readonly type: "reset_password"; readonly user: Omit<DatabaseUserSpec, "role"> }
  | { readonly type: "delete_user"; readonly username: string };

export type DatabaseChange =
  | { readonly type: "create_database"; readonly name: string; readonly owner: string }
  | { readonly type: "delete_database"; readonly name: string };

/** What changes are about. */
export interface EngineTarget {
  readonly kind: "user" | "database";
  readonly name: string;
}

/** One change at a time: those of one thing have one key. What was named in SQL may have any name. */
export function engineChangeId(serviceId: string, { kind, name }: EngineTarget): string {
  return `${serviceId}.${kind}.${encodeURIComponent(name)}`;
}

export function targetOf(change: EngineChange): EngineTarget {
  switch (change.type) {
    case "create_user":
    case "reset_password":
      return { kind: "user", name: change.user.username };
    case "delete_user":
      return { kind: "user", name: change.username };
    case "create_database":
    case "delete_database":
      return { kind: "database", name: change.name };
  }
}

/** A change that nobody has begun. */
export function newEngineChange(args: {
  serviceId: string;
  organizationId: string;
  operationId: string;
  change: EngineChange & { readonly type: EngineOperationType };
  now: number;
}): EngineChangeObject {
  const { serviceId, organizationId, operationId, change, now } = args;
  const target = targetOf(change);
  const id = engineChangeId(serviceId, target);
  return {
    metadata: newMetadata(id, now, { name: target.name, organizationId }),
    spec: { serviceId, operationId, change },
    status: { attempt: 1, isUncertain: false, isGivenUp: false },
  };
}
