import { create } from "@bufbuild/protobuf";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import type { Task } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { DatabasePasswordSchema } from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { helloOf, openSession, type TestSession } from "@holdfast/testing/machines/test-agent.ts";
import { newInstallation, startController, type TestController } from "@holdfast/testing/controller/test-fleet.ts";
import type { TestInstallation } from "@holdfast/testing/controller/test-fleet.ts";
import { nodeOf, runningService } from "@holdfast/testing/controller/service-object.ts";
import { testCall } from "@holdfast/testing/api/test-call.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type Collections, createCollections } from "@holdfast/testing/controller/test-collections.ts";
import { createServiceAccess } from "../../service/service-access.ts";
import { keyOf } from "#kernel/store/resource.ts";
import { createUnitOfWork } from "#kernel/store/unit-of-work.ts";
import { createEngineChangeWork } from "./engine-change-reconciler.ts";
import { taskInputOf } from "./engine-change-task.ts";
import { createEngineChanges } from "./engine-changes.ts";
import { engineChangeKind } from "./engine-change.ts";
import { managedServiceKind } from "../../service/managed-service.ts";

// A real store, a real fleet and an agent's stream that the test drives; the test advances the clock.
let installation: TestInstallation;
let controller: TestController;
let collections: Collections;
let laterMs = 0;
const clock = { ...systemClock, now: () => systemClock.now() + laterMs };
const { signal } = new AbortController();
const begin = () =>
  createUnitOfWork(controller.store, { outbox: { admit() {} }, sealer: controller.sealer, clock, ids: uuidv7 });

beforeAll(async () => {
  installation = await newInstallation();
  controller = await startController(installation, "c-1", { clock, limits: { checkIntervalMs: 100 } });
  collections = createCollections(controller.store);
  await collections.ready;
});
afterAll(async () => {
  collections?.close();
  await installation?.close();
});

/** A service on a connected machine, with a password reset of `u` in progress. */
async function resetting(name: string) {
  const { services, operations, engineChanges, databaseUsers: users } = collections;
  const unit = begin();
  const nodes = { spec: { nodes: [nodeOf(name)] }, status: { primaryNodeId: name, nodes: [] } };
  const metadata = { id: name, name, organizationId: "o" };
  unit.create(managedServiceKind, runningService(metadata, nodes.spec, nodes.status));
  await collections.untilRevision(await unit.commit(), 60_000);
  const identity = await controller.newAgent(name);
  const connect = async () => {
    const session = openSession(controller.dial(identity), helloOf(name));
    await session.expect("welcome");
    await waitUntil("the agent is there", () => controller.fleet.session(name) !== undefined);
    return session;
  };
  const leave = async (session: TestSession) => {
    session.close();
    await waitUntil("the agent is gone", () => controller.fleet.session(name) === undefined);
  };
  const { fleet } = controller;
  const changes = createEngineChanges({
    begin,
    changes: engineChanges,
    operations,
    users,
    access: createServiceAccess({ services, operations }),
    fleet,
    awaitDescriptor: async () => undefined,
    clock,
    newId: uuidv7,
    waitMs: 1,
  });
  const work = createEngineChangeWork({
    changes: engineChanges,
    services,
    operations,
    users,
    fleet,
    begin,
    clock,
    log: silentLog,
  });
  const call = testCall({ signal });
  const answer = { serviceId: name, username: "u", password: "secret" };
  const ask = () =>
    changes.apply(
      {
        serviceId: name,
        change: {
          type: "reset_password",
          user: { serviceId: name, username: "u", sealedPassword: "sealed", verifier: "v" },
        },
        audit: { action: "database-user.reset-password", objectKind: "database-user", objectId: "u" },
        inFlight: (operation) => create(DatabasePasswordSchema, { ...answer, operation }),
        applied: () => create(DatabasePasswordSchema, answer),
      },
      call,
    );
  const session = await connect();
  const operationId = (await ask()).operation?.id ?? "";
  const id = `${name}.user.u`;
  const change = () => engineChanges.get(id);
  return {
    session,
    operationId,
    connect,
    leave,
    ask,
    change,
    /** Reconciles until the condition is true. */
    until: (what: string, isSo: () => boolean) =>
      waitUntil(what, async () => {
        await work.reconciler.reconcile(id, signal);
        return isSo();
      }),
    operation: () => operations.get(operationId)?.object.status,
    storedUser: () => users.get(`${name}.u`)?.object.spec,
  };
}

const tasksOf = ({ received }: TestSession): Task[] =>
  received.flatMap(({ frame }) => (frame.case === "task" ? [frame.value] : []));

test("a change with an unknown outcome fails at its deadline, is not repeated, and is settled later", async () => {
  laterMs = 0;
  const { session, operationId, connect, leave, ask, change, until, operation, storedUser } = await resetting("silent");
  await until("the machine has the task", () => tasksOf(session).length > 0);
  expect(tasksOf(session)[0]?.id).toBe(`${operationId}-1`);
  await leave(session);
  laterMs = 10 * 60_000 + 1;
  await until("the operation is over", () => operation()?.state === "failed");
  expect(operation()?.error).toMatchObject({ code: "outcome_unknown" });
  expect(change()?.object.status.isGivenUp).toBe(true);
  await expect(ask()).rejects.toMatchObject({ key: "MACHINE_UNREACHABLE" });

  const again = await connect();
  const settling = until("what the engine has is known", () => change() === undefined);
  const { id: taskId, input } = await again.expect("task");
  expect(input).toMatchObject({ case: "settleEngineChange", value: { withdrawnTasks: [`${operationId}-1`] } });
  again.send({
    case: "taskResult",
    value: { taskId, output: { case: "settleEngineChange", value: { taken: true, role: "readwrite" } } },
  });
  await settling;
  await waitUntil("the password is stored", () => storedUser()?.sealedPassword === "sealed");
  expect(storedUser()).toMatchObject({ role: "readwrite", verifier: "v" });
  expect(operation()?.state).toBe("failed");
  expect(tasksOf(again)).toHaveLength(1);
  expect((await ask()).operation?.type).toBe("reset_password");
  again.close();
});

test("a new password of a user with custom privileges is applied and not stored", async () => {
  laterMs = 0;
  const { session, until, change, operation, storedUser } = await resetting("custom");
  await until("the machine has the task", () => tasksOf(session).length > 0);
  const [task] = tasksOf(session);
  session.send({
    case: "taskResult",
    value: { taskId: task?.id ?? "", output: { case: "putEngineUser", value: { changed: true, role: "custom" } } },
  });
  await until("the change is over", () => change() === undefined);
  expect(operation()?.state).toBe("completed");
  expect(storedUser()).toBeUndefined();
  session.close();
});

test("a change that no machine got fails at its deadline, also if a late controller submits it", async () => {
  laterMs = 0;
  const { session, operationId, connect, leave, change, until, operation, storedUser } = await resetting("gone");
  await leave(session);
  const before = change();
  if (before === undefined) throw new Error("there is no change");
  await until("it waits for its machine", () => operation() !== undefined);
  laterMs = 10 * 60_000 + 1;
  await until("the operation is over", () => operation()?.state === "failed");
  expect(operation()?.error).toMatchObject({ code: "machine_unreachable" });
  await waitUntil("nothing is left of it", () => change() === undefined);
  expect(storedUser()).toBeUndefined();

  const taskId = `${operationId}-1`;
  const onlyWhile = { key: keyOf(engineChangeKind, before.object.metadata.id), modRevision: before.modRevision };
  const request = { ownerId: "gone", generation: 1, term: 1, lane: "query", deadlineMs: 60_000, onlyWhile } as const;
  await controller.fleet.submit("gone", taskId, { ...request, input: taskInputOf(before.object) });
  expect(controller.fleet.task(taskId)).toBeUndefined();
  const again = await connect();
  expect(tasksOf(again)).toEqual([]);
  again.close();
});
