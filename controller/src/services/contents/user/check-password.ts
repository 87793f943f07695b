import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { EngineChanges } from "../change/engine-changes.ts";
import type { EngineTasks } from "../../service/engine-task.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import type { DatabaseUserObject } from "./database-user.ts";

export interface PasswordCheckDeps {
  readonly tasks: Pick<EngineTasks, "run">;
  readonly changes: Pick<EngineChanges, "refuseWhileChanging">;
}

/**
 * Throws DATABASE_USER_NOT_FOUND and PASSWORD_NOT_KNOWN if the engine has another password than the stored one, and
 * OPERATION_IN_PROGRESS while one is being set. An engine that does not respond, such as a Valkey in a script, rejects
 * nothing: the stored password is what ends the script.
 */
export async function checkPassword(
  service: ManagedServiceObject,
  managed: DatabaseUserObject,
  call: Call,
  { tasks, changes }: PasswordCheckDeps,
): Promise<void> {
  const { username, verifier } = managed.spec;
  const value = { $typeName: "holdfast.agent.v1.CheckEnginePassword", username, verifier } as const;
  const checked = await tasks.run(service, { case: "checkEnginePassword", value }, call.signal).catch(ignoreSilence);
  // A new password that the engine already has is returned once its operation has ended.
  if (checked?.matches !== true) changes.refuseWhileChanging(service, { kind: "user", name: username });
  if (checked === undefined) return;
  if (!checked.exists) throw new HoldfastError("DATABASE_USER_NOT_FOUND", `The engine has no user ${username}.`);
  if (!checked.matches)
    throw new HoldfastError("PASSWORD_NOT_KNOWN", `The password of ${username} was changed in the engine; reset it.`);
}

function ignoreSilence(error: unknown): undefined {
  if (!(error instanceof HoldfastError) || error.key !== "MACHINE_UNREACHABLE") throw error;
}
