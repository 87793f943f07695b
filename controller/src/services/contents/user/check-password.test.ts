import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import { checkPassword, type PasswordCheckDeps } from "./check-password.ts";
import type { DatabaseUserObject } from "./database-user.ts";

const busy = new HoldfastError("MACHINE_UNREACHABLE", "Valkey runs a script: SCRIPT KILL ends it.");
const changing = new HoldfastError("OPERATION_IN_PROGRESS", "A password is being set.");

function check(answer: { exists: boolean; matches: boolean } | Error, { isChanging = false } = {}) {
  const deps = partial<PasswordCheckDeps>({
    tasks: {
      run: async () => {
        if (answer instanceof Error) throw answer;
        return { $typeName: "holdfast.agent.v1.CheckEnginePasswordResult", ...answer } as never;
      },
    },
    changes: {
      refuseWhileChanging() {
        if (isChanging) throw changing;
      },
    },
  });
  const user = partial<DatabaseUserObject>({ spec: { username: "app_user", verifier: "v" } });
  const call = partial<Call>({ signal: new AbortController().signal });
  return checkPassword(runningService(), user, call, deps);
}

test("the stored password is given while the engine does not respond", async () => {
  await expect(check(busy)).resolves.toBeUndefined();
  await expect(check(busy, { isChanging: true })).rejects.toBe(changing);
});

test.each([
  ["is as stored", { exists: true, matches: true }, undefined],
  ["was changed in the engine", { exists: true, matches: false }, "PASSWORD_NOT_KNOWN"],
  ["is of a deleted user", { exists: false, matches: false }, "DATABASE_USER_NOT_FOUND"],
  ["is refused by the engine", new HoldfastError("ENGINE_REFUSED", "no"), "ENGINE_REFUSED"],
])("a password that %s", async (_, answer, key) => {
  const checked = check(answer);
  if (key === undefined) await checked;
  else await expect(checked).rejects.toMatchObject({ key });
});
