import { randomBytes } from "node:crypto";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TaskInput } from "#fleet/task/task.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import { managedServiceKind } from "../../service/managed-service.ts";
import { addLogin, endLogin, loginOf, refuseAttachedLogin, sessionRoleOf } from "./attached-login.ts";
import { createAttachedLoginWork } from "./attached-login-reconciler.ts";
import { databaseUserId } from "./database-user.ts";

// A real store; the engine is a list of tasks. test/system/app-hosting.long.test.ts has the real one.

const { signal } = new AbortController();
const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
const attachment = { id: "0198f2a4-8f31-7c02-9d4e-6a1b7c3d5e80", appName: "shop" };
const tasks: TaskInput[] = [];
let isDown = false;
let store: TestStore;
let work: ControlLoop;

beforeAll(async () => {
  store = await startTestStore();
  const run = async (_: unknown, input: TaskInput): Promise<never> => {
    if (isDown) throw new HoldfastError("MACHINE_UNREACHABLE", "down");
    tasks.push(input);
    return undefined as never;
  };
  const { databaseUsers: users, services } = store.collections;
  const { begin } = store;
  work = createAttachedLoginWork({ users, services, begin, log: silentLog, tasks: { run } });
});
afterAll(() => store?.close());

const reconcile = (id: string) => work.reconciler.reconcile(id, signal);

/** A service with the user of an attachment. */
async function attached(id: string) {
  const { collections, begin } = store;
  const service = runningService({ id, name: id, organizationId: "o" });
  const unit = begin();
  unit.create(managedServiceKind, service);
  const username = addLogin(unit, service, attachment, { sealer, now: 1 });
  await collections.untilRevision(await unit.commit(), 5_000);
  tasks.length = 0;
  const userId = databaseUserId(id, username);
  return { username, userId, stored: () => collections.databaseUsers.get(userId) };
}

test("the engine gets the user of an attachment once, and its app gets the password after that", async () => {
  const { username, userId, stored } = await attached("orders");
  expect(username).toBe("app_6a1b7c3d5e80");
  const login = () => loginOf("orders", username, { users: store.collections.databaseUsers, sealer });
  expect(login()).toBeUndefined();
  isDown = true;
  expect(await reconcile(userId)).toMatchObject({ done: false });
  isDown = false;
  expect([...work.keys()]).toContain(userId);
  await reconcile(userId);
  await reconcile(userId);
  expect(tasks).toMatchObject([{ case: "putEngineUser", value: { user: { username, sessionRole: "app_user" } } }]);
  expect(stored()?.object.status).toEqual({ isInEngine: true });
  expect(login()).toMatchObject({ username });
  expect([...work.keys()]).not.toContain(userId);
});

test("the user of an attachment that ended is dropped, and then forgotten", async () => {
  const { username, userId, stored } = await attached("users");
  await reconcile(userId);
  const user = stored();
  if (user === undefined) throw new Error("there is no user");
  const unit = store.begin();
  endLogin(unit, user, 2);
  await store.collections.untilRevision(await unit.commit(), 5_000);
  tasks.length = 0;
  await reconcile(userId);
  expect(tasks).toMatchObject([{ case: "dropEngineUser", value: { username } }]);
  expect(stored()).toBeUndefined();
  expect(await reconcile(userId)).toMatchObject({ done: true });
});

test("only its app changes the user of an attachment, which begins as the default user in PostgreSQL alone", async () => {
  const { stored } = await attached("media");
  const user = stored()?.object;
  if (user === undefined) throw new Error("there is no user");
  expect(() => refuseAttachedLogin(user)).toThrow(/is the user of app shop/);
  refuseAttachedLogin(undefined);
  expect([sessionRoleOf(user, "postgresql"), sessionRoleOf(user, "mysql")]).toEqual(["app_user", undefined]);
});
