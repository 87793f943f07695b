import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import type { Context } from "./context.ts";
import { UsageError } from "./exit-code.ts";
import { engineLogin } from "./engine-login.ts";

const revealed: string[][] = [];
const context = partial<Context>({
  client: {
    databaseUsers: {
      revealPassword: async (service: string, user: string) => {
        revealed.push([service, user]);
        return { password: "secret" };
      },
    },
  },
});
const service = { id: "1", name: "leases", database_type: "quorate" };

test.each([
  ["the default user", {}, "app_user", undefined, "app_user"],
  ["a named user", {}, "app_user", "reports", "reports"],
  ["a named user where the service has no default one", {}, "", "reports", "reports"],
])("the login is of %s", async (_, client, byDefault, user, expected) => {
  revealed.length = 0;
  const login = await engineLogin(context, service, client, { user: byDefault }, { user, database: "d" });
  expect(login).toEqual({ user: expected, password: "secret", database: "d" });
  expect(revealed).toEqual([["1", expected]]);
});

test("an engine without users has sessions without a login, and no password is revealed", async () => {
  revealed.length = 0;
  const login = await engineLogin(context, service, { hasNoUsers: true }, { user: "" }, {});
  expect(login).toEqual({ user: "", password: "" });
  expect(revealed).toEqual([]);
});

test.each([
  [
    "a user of an engine without users",
    { hasNoUsers: true },
    "x",
    "leases is quorate, which has no users: omit --user",
  ],
  ["no user of a service without a default one", {}, undefined, "leases has no default user: name one with --user"],
] as const)("%s is refused", async (_, client, user, text) => {
  const refused = engineLogin(context, service, client, { user: "" }, { user });
  await expect(refused).rejects.toThrow(new UsageError(text));
});
