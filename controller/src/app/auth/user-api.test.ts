import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { AuthUserSchema, CreateAuthUserRequestSchema } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import { testCall } from "@holdfast/testing/api/test-call.ts";
import { beforeEach, expect, test } from "vitest";
import type { AuditedActs } from "#kernel/outbox/audited-acts.ts";
import type { NewAudit } from "#kernel/store/outbox-entry.ts";
import { userHandlers } from "./user-api.ts";

let steps: string[];
let isStoreAvailable: boolean;
let isAdded: boolean;

beforeEach(() => {
  [steps, isStoreAvailable, isAdded] = [[], true, true];
});

const unavailable = () => new HoldfastError("STORE_UNAVAILABLE", "The store does not respond.");
const act: AuditedActs["act"] = async ({ action, objectId }: NewAudit, run) => {
  if (!isStoreAvailable) throw unavailable();
  steps.push(`pending ${action} of ${objectId}`);
  const result = await run();
  steps.push("stored");
  return result;
};

const { createAuthUser } = userHandlers({
  access: {
    active: () => ({ object: { metadata: { id: "app-1" }, spec: { serviceId: "s-1", databaseName: "shop" } } }),
  },
  services: { get: () => ({ object: {} }) },
  tasks: {
    run: async (_: unknown, { case: name }: { case: string }) => {
      steps.push(name);
      return { added: isAdded };
    },
  },
  auditedActs: { act },
  clock: { now: () => 1_000, monotonicMs: () => 0 },
  newId: () => "user-1",
  begin: () => {
    throw unavailable();
  },
} as never);

const createUser = async () =>
  create(
    AuthUserSchema,
    await createAuthUser(create(CreateAuthUserRequestSchema, { appId: "app-1", email: "a@example.com" }), testCall()),
  );

test("a user is written into the app's database once an audit entry of it is stored", async () => {
  expect(await createUser()).toMatchObject({ id: "user-1", email: "a@example.com", emailVerified: false });
  expect(steps).toEqual(["pending app-auth.user.create of app-1", "addAuthUser", "stored"]);
});

test("no user is written while the store does not respond", async () => {
  isStoreAvailable = false;
  await expect(createUser()).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
  expect(steps).toEqual([]);
});

test("a second user with an address is a refused act", async () => {
  isAdded = false;
  await expect(createUser()).rejects.toMatchObject({ key: "USER_EXISTS" });
  expect(steps).toEqual(["pending app-auth.user.create of app-1", "addAuthUser"]);
});
