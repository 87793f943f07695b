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
import type { EngineChangeObject } from "./engine-change.ts";

/** How the engine answered. */
export type EngineOutcome =
  /** `role` is that of the user as the engine has it; empty for what is no user. */
  | { readonly kind: "taken"; readonly role: string }
  /** It did not, and nothing of it is left. */
  | { readonly kind: "refused"; readonly code: string; readonly message: string }
  /** It did not, because of what others hold or because it is not there; it may later. */
  | { readonly kind: "notYet"; readonly code: string; readonly message: string }
  /** It may have, or not. */
  | { readonly kind: "unknown"; readonly message: string };

/** What an engine has of a change that is not tried any more. */
export type SettledOutcome =
  | { readonly kind: "taken"; readonly role: string }
  /** It does not have it, and will not. */
  | { readonly kind: "absent" }
  /** Its agent is of a release that cannot say. */
  | { readonly kind: "untold"; readonly message: string }
  /** No answer, for now. */
  | { readonly kind: "silent" };

// Codes of failures after which nothing was changed, and the same may go well later.
const delays: readonly string[] = ["engine_busy", "not_ready"];

// Codes of failures after which nothing was changed, and nothing will be.
// biome-ignore format: a table, aligned so that it reads as one
const refusals: readonly string[] = [
  "engine_refused", "not_supported", "invalid_task", "name_taken", "database_user_not_found", "not_possible",
];

/** Tasks of one operation, told apart by the attempt. */
export function taskIdOf({ spec, status }: EngineChangeObject): string {
  return `${spec.operationId}-${status.attempt}`;
}

/** Pure: the task that brings the change to the engine. Done twice it comes to the same. */
export function taskInputOf({ spec: { change, operationId } }: EngineChangeObject): TaskInput {
  switch (change.type) {
    case "create_user": {
      const { username, role, verifier } = change.user;
      const user = { username, role, verifier };
      return {
        case: "putEngineUser",
        value: create(PutEngineUserSchema, { user, expected: ExpectedUser.ABSENT }),
      };
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

/** Pure: the quick task that ends what earlier ones began, and asks what the engine has. */
export function settleInputOf(change: EngineChangeObject): TaskInput {
  const { spec, status } = change;
  const withdrawnTasks = Array.from({ length: status.attempt }, (_, n) => `${spec.operationId}-${n + 1}`);
  const input = taskInputOf(change) as SettleEngineChange["change"];
  return { case: "settleEngineChange", value: create(SettleEngineChangeSchema, { withdrawnTasks, change: input }) };
}

/** Pure: what the answer to that says. */
export function settledOutcomeOf({ failure, output }: TaskResult): SettledOutcome {
  if (output.case === "settleEngineChange") {
    const { taken, role } = output.value;
    return taken ? { kind: "taken", role } : { kind: "absent" };
  }
  if (failure?.code !== "not_supported") return { kind: "silent" };
  return { kind: "untold", message: `It is not known whether the engine took it: ${failure.message}` };
}

/** Pure: what the result of a task says about the engine. */
export function engineOutcomeOf({ spec, status, metadata }: EngineChangeObject, result: TaskResult): EngineOutcome {
  if (result.failure !== undefined) {
    const { code, message } = result.failure;
    if (delays.includes(code)) return { kind: "notYet", code, message };
    return refusals.includes(code) ? { kind: "refused", code, message } : { kind: "unknown", message };
  }
  const { name } = metadata;
  const { output } = result;
  switch (output.case) {
    case "putEngineUser":
      return { kind: "taken", role: output.value.role };
    case "createEngineDatabase":
      if (output.value.created) break;
      return { kind: "refused", code: "name_taken", message: `The engine has a database ${name} already.` };
    case "dropEngineUser":
    case "dropEngineDatabase": {
      // An earlier attempt, of which no word came, may have removed it.
      if (output.value.existed || status.attempt > 1) break;
      const [code, what] =
        spec.change.type === "delete_user" ? ["database_user_not_found", "user"] : ["database_not_found", "database"];
      return { kind: "refused", code, message: `The engine has no ${what} ${name}.` };
    }
    default:
      throw new Error(`${spec.change.type} was answered with ${output.case}`);
  }
  return { kind: "taken", role: "" };
}
