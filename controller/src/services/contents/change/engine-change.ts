import { invalid } from "@holdfast/common/errors.ts";
import type { EngineProfile } from "../../engine/engine-profile.ts";
import type { DatabaseUserSpec } from "../user/database-user.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { EngineOperationType } from "./engine-operations.ts";

/**
 * A requested change of users or databases in an engine. The object exists until the outcome is known, and is removed
 * in the transaction that changes the stored user, so that store and engine agree. The operation ends at the same time,
 * or earlier if the engine was not reached before the deadline.
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
  /** Number of the newest attempt; the first is 1. */
  readonly attempt: number;
  /** True if the outcome of an earlier attempt is unknown. */
  readonly isUncertain: boolean;
  /**
   * True if the operation has ended without an outcome: no attempt follows, and only the engine's state must be read.
   */
  readonly isGivenUp: boolean;
}

export type EngineChange = UserChange | DatabaseChange;

export type UserChange =
  | { readonly type: "create_user"; readonly user: DatabaseUserSpec; readonly replication?: boolean }
  | { readonly type: "update_user"; readonly username: string; readonly replication: boolean }
  /** The engine keeps the user's role, and returns it with the result. */
  | { readonly type: "reset_password"; readonly user: Omit<DatabaseUserSpec, "role"> }
  | { readonly type: "delete_user"; readonly username: string };

export type DatabaseChange =
  | { readonly type: "create_database"; readonly name: string; readonly owner: string }
  | { readonly type: "delete_database"; readonly name: string };

/** The user or database that a change creates, changes or deletes. */
export interface EngineTarget {
  readonly kind: "user" | "database";
  readonly name: string;
}

/**
 * Id of a change: one target has one change at a time. Names created in SQL may have any characters, so they are
 * encoded.
 */
export function engineChangeId(serviceId: string, { kind, name }: EngineTarget): string {
  return `${serviceId}.${kind}.${encodeURIComponent(name)}`;
}

export function targetOf(change: EngineChange): EngineTarget {
  switch (change.type) {
    case "create_user":
    case "reset_password":
      return { kind: "user", name: change.user.username };
    case "update_user":
    case "delete_user":
      return { kind: "user", name: change.username };
    case "create_database":
    case "delete_database":
      return { kind: "database", name: change.name };
  }
}

/** A change without an attempt. */
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

/** Throws INVALID_REQUEST if the name of a new user or database is longer than the engine accepts. */
export function requireNameLength(change: EngineChange, { nameMax = {} }: Pick<EngineProfile, "nameMax">): void {
  if (change.type === "create_user") requireAtMost("username", change.user.username, nameMax.user);
  if (change.type === "create_database") requireAtMost("name", change.name, nameMax.database);
}

function requireAtMost(field: string, name: string, max = Number.POSITIVE_INFINITY): void {
  if (name.length > max)
    throw invalid({ field, code: "too_long", detail: `must be at most ${max} characters in this engine` });
}
