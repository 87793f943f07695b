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
 * Checks that the engine has the stored password: throws PASSWORD_NOT_KNOWN if it has another one,
 * DATABASE_USER_NOT_FOUND without the user, and OPERATION_IN_PROGRESS while a new password is being set. If the engine
 * does not respond, the check passes: a user needs the password, for example, to kill a script that blocks Valkey.
 */
export async function checkPassword(
  service: ManagedServiceObject,
  managed: DatabaseUserObject,
  call: Call,
  { tasks, changes }: PasswordCheckDeps,
): Promise<void> {
  const { username, verifier } = managed.spec;
  const value = { $typeName: "holdfast.agent.v1.CheckEnginePassword", username, verifier } as const;
  const checked = await tasks
    .run(service, { case: "checkEnginePassword", value }, call.signal)
    .catch(ignoreUnreachable);
  // If the engine already has a new password, the password is returned once its operation has ended.
  if (checked?.matches !== true) changes.refuseWhileChanging(service, { kind: "user", name: username });
  if (checked === undefined) return;
  if (!checked.exists) throw new HoldfastError("DATABASE_USER_NOT_FOUND", `The engine has no user ${username}.`);
  if (!checked.matches)
    throw new HoldfastError(
      "PASSWORD_NOT_KNOWN",
      `The password of ${username} was changed in the engine. Reset it to get a new one.`,
    );
}

function ignoreUnreachable(error: unknown): undefined {
  if (!(error instanceof HoldfastError) || error.key !== "MACHINE_UNREACHABLE") throw error;
}
