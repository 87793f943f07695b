import { expect, test } from "vitest";
import { type Activity, activityChecks, idsBeforeWraparound } from "./activity-checks.ts";
import { issuerSlots } from "./layout.ts";

const calm: Activity = {
  connections: 0,
  limit: 100,
  issuerConnections: 0,
  oldest: null,
  idAge: 1_000,
  idDatabase: "defaultdb",
};
const signIn = { engine: "postgresql", hasIssuers: true };
const session = { seconds: 3_601, user: "app_user", pid: 4711, gid: null };

test.each([
  ["an idle engine", {}, {}],
  ["89 of 100 connections", { connections: 89 }, {}],
  ["90 of 100 connections", { connections: 90 }, { connections: ["degraded", /90% of the 100/] }],
  ["a transaction of an hour", { oldest: { ...session, seconds: 3_600 } }, {}],
  [
    "a longer transaction",
    { oldest: session },
    { long_transaction: ["degraded", /of app_user \(pid 4711\) .* 1 hour:/] },
  ],
  [
    "a prepared transaction",
    { oldest: { ...session, seconds: 9_000, pid: null, gid: "two phases" } },
    { long_transaction: ["degraded", /prepared transaction two phases of app_user .* 2 hours:/] },
  ],
  ["ids just below half", { idAge: idsBeforeWraparound / 2 - 1 }, {}],
  ["half of the ids", { idAge: idsBeforeWraparound / 2 }, { transaction_ids: ["degraded", /50%.*defaultdb/] }],
  ["three quarters", { idAge: idsBeforeWraparound * 0.75 }, { transaction_ids: ["unhealthy", /75%.*defaultdb/] }],
] as const)("%s", (_, change, expected) => {
  const checks = activityChecks({ ...calm, ...change }, { engine: "postgresql", hasIssuers: false });
  expect(checks.map(({ name }) => name)).toEqual(["connections", "long_transaction", "transaction_ids"]);
  const expectedChecks: Readonly<Record<string, readonly [string, RegExp]>> = expected;
  for (const { name, status, reason } of checks) {
    const [level, pattern] = expectedChecks[name] ?? ["healthy", /^$/];
    expect([name, status]).toEqual([name, level]);
    expect(reason).toMatch(pattern);
  }
});

test("connections reserved for sign-ins are checked where users of an app sign in", () => {
  const [signInCheck] = activityChecks({ ...calm, issuerConnections: issuerSlots }, signIn).slice(3);
  expect(signInCheck).toEqual({ name: "sign_in_connections", status: "healthy", reason: "" });
  const [missing] = activityChecks(calm, signIn).slice(3);
  expect(missing).toMatchObject({ name: "sign_in_connections", status: "degraded" });
  expect(missing?.reason).toMatch(/Restart the service/);
});
