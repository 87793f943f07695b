import { create } from "@bufbuild/protobuf";
import {
  CreateEngineDatabaseSchema,
  DropEngineDatabaseSchema,
  DropEngineUserSchema,
  ExpectedUser,
  PutEngineUserSchema,
  type SettleEngineChange,
  SettleEngineChangeSchema,
  type TaskResult,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { TaskInput } from "#fleet/task/task.ts";
import type { EngineChange, EngineChangeObject } from "./engine-change.ts";

/** Outcome of one attempt. */
export type EngineOutcome =
  /** Applied. `role` is the user's role in the engine; empty for a change of a database. */
  | { readonly kind: "applied"; readonly role: string }
  /** Not applied; the engine is unchanged. */
  | { readonly kind: "refused"; readonly code: string; readonly message: string }
  /** Not applied now, because the engine is busy or not ready; a later attempt may succeed. */
  | { readonly kind: "retryable"; readonly code: string; readonly message: string }
  /** Unknown whether it was applied. */
  | { readonly kind: "unknown"; readonly message: string };

/** The engine's state after the deadline of a change. */
export type SettledOutcome =
  | { readonly kind: "applied"; readonly role: string }
  /** Not applied, and it will not be. */
  | { readonly kind: "absent" }
  /** The agent cannot determine whether it was applied. */
  | { readonly kind: "unsupported"; readonly message: string }
  /** No response yet. */
  | { readonly kind: "noResponse" };

// Codes of failures that changed nothing and may be repeated.
const retryableCodes: readonly string[] = ["engine_busy", "not_ready"];

// Codes of failures after which nothing was changed, and nothing will be.
// biome-ignore format: a table, aligned so that it reads as one
const refusals: readonly string[] = [
  "engine_refused", "not_supported", "invalid_task", "name_taken", "database_user_not_found", "not_possible",
];

/** Id of the newest attempt's task. */
export function taskIdOf({ spec, status }: EngineChangeObject): string {
  return `${spec.operationId}-${status.attempt}`;
}

/** The task that applies the change. It is idempotent. */
export function taskInputOf({ spec: { change, operationId } }: EngineChangeObject): TaskInput {
  switch (change.type) {
    case "create_user": {
      const { username, role, verifier } = change.user;
      const { replication } = change;
      const user = { username, role, verifier, ...(replication !== undefined && { replication }) };
      return {
        case: "putEngineUser",
        value: create(PutEngineUserSchema, { user, expected: ExpectedUser.ABSENT }),
      };
    }
    case "update_user": {
      const { username, replication } = change;
      const value = create(PutEngineUserSchema, { user: { username, replication }, expected: ExpectedUser.PRESENT });
      return { case: "putEngineUser", value };
    }
    case "reset_password": {
      const { username, verifier } = change.user;
      const value = create(PutEngineUserSchema, { user: { username, verifier }, expected: ExpectedUser.PRESENT });
      return { case: "putEngineUser", value };
    }
    case "delete_user":
      return { case: "dropEngineUser", value: create(DropEngineUserSchema, { username: change.username }) };
    case "create_database": {
      const { name, owner } = change;
      const value = create(CreateEngineDatabaseSchema, { name, owner, mark: operationId });
      return { case: "createEngineDatabase", value };
    }
    case "delete_database":
      return { case: "dropEngineDatabase", value: create(DropEngineDatabaseSchema, { name: change.name }) };
  }
}

/** The task that withdraws earlier attempts, and then reads the engine's state. */
export function settleInputOf(change: EngineChangeObject): TaskInput {
  const { spec, status } = change;
  const withdrawnTasks = Array.from({ length: status.attempt }, (_, n) => `${spec.operationId}-${n + 1}`);
  const input = taskInputOf(change) as SettleEngineChange["change"];
  return { case: "settleEngineChange", value: create(SettleEngineChangeSchema, { withdrawnTasks, change: input }) };
}

/** The outcome in the result of a settle task. */
export function settledOutcomeOf({ failure, output }: TaskResult): SettledOutcome {
  if (output.case === "settleEngineChange") {
    const { taken, role } = output.value;
    return taken ? { kind: "applied", role } : { kind: "absent" };
  }
  if (failure?.code !== "not_supported") return { kind: "noResponse" };
  return { kind: "unsupported", message: `It is unknown whether the engine applied the change: ${failure.message}` };
}

const replicationUnsupported: EngineOutcome = {
  kind: "refused",
  code: "not_supported",
  message:
    "The machine's agent cannot set REPLICATION yet. Try again after the agent's update, which follows the controllers' update.",
};

function requestsReplication(change: EngineChange): boolean {
  return (change.type === "create_user" || change.type === "update_user") && change.replication === true;
}

/** The outcome in the result of an attempt. */
export function engineOutcomeOf({ spec, status, metadata }: EngineChangeObject, result: TaskResult): EngineOutcome {
  if (result.failure !== undefined) {
    const { code, message } = result.failure;
    if (retryableCodes.includes(code)) return { kind: "retryable", code, message };
    return refusals.includes(code) ? { kind: "refused", code, message } : { kind: "unknown", message };
  }
  const { name } = metadata;
  const { output } = result;
  switch (output.case) {
    case "putEngineUser":
      if (requestsReplication(spec.change) && !output.value.replication) return replicationUnsupported;
      return { kind: "applied", role: output.value.role };
    case "createEngineDatabase":
      if (output.value.created) break;
      return { kind: "refused", code: "name_taken", message: `The engine already has a database ${name}.` };
    case "dropEngineUser":
    case "dropEngineDatabase": {
      // An earlier attempt without a response may have removed the target.
      if (output.value.existed || status.attempt > 1) break;
      const [code, what] =
        spec.change.type === "delete_user" ? ["database_user_not_found", "user"] : ["database_not_found", "database"];
      return { kind: "refused", code, message: `The engine has no ${what} ${name}.` };
    }
    default:
      throw new Error(`${spec.change.type} had the result ${output.case}`);
  }
  return { kind: "applied", role: "" };
}
