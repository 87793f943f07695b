import { create } from "@bufbuild/protobuf";
import {
  QueueClaimSchema,
  QueueEnqueueSchema,
  type QueueRequest,
  QueueRequestSchema,
  QueueSettleSchema,
  QueueTaskBeginSchema,
  QueueVerb,
} from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import { EngineQueueSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createQueueDatabase, type QueueDatabase } from "@holdfast/testing/engines/queue-database.ts";
import { EngineRefused } from "../../engine-errors.ts";
import { createQueues } from "./queues.ts";

describe.skipIf(!hasEngine("postgresql", "17"))("queues whose database its users change", () => {
  let database: QueueDatabase;
  const signal = AbortSignal.timeout(170_000);
  const queues = createQueues();

  beforeAll(async () => {
    database = await createQueueDatabase();
    await database.asPlatform((session) => session.rows("CREATE DATABASE before OWNER app_user"));
    await put("before");
    const request = create(QueueRequestSchema, {
      queue: "mail",
      request: { case: "enqueue", value: { taskId: "t", messages: [{ payload: '{"n": 1}' }] } },
    });
    await queues.call(instance(), "before", request, signal);
  });
  afterAll(async () => {
    queues.closeSessions();
    await database?.remove();
  });

  const instance = () => database.machine.instance;
  const put = (name: string) => {
    const settings = { visibilityTimeoutSeconds: 30, maxAttempts: 5, dlqEnabled: true };
    const queue = create(EngineQueueSchema, { database: name, id: "q", name: "mail", ...settings });
    return queues.put(instance(), queue, { adopt: false }, signal);
  };
  const list = async () => (await queues.list(instance(), signal)).map(({ database: name, id }) => ({ name, id }));

  /** Payloads of a claim of one. */
  async function claim(name: string): Promise<string[]> {
    const claimOne = { case: "claim", value: { worker: crypto.randomUUID(), max: 1 } } as const;
    const request = create(QueueRequestSchema, { queue: "mail", request: claimOne });
    const { response } = await queues.call(instance(), name, request, signal);
    return response.case === "messages" ? response.value.messages.map(({ payload }) => payload) : [];
  }

  /** Idle sessions of queues block ALTER DATABASE only until they close. */
  async function changes(statement: string): Promise<void> {
    const owner = await database.connect();
    await expect.poll(() => owner.query(statement).then(() => "done", String)).toBe("done");
    await owner.end();
  }

  it("are found with their messages under its new name, and are refused under the old one", async () => {
    await changes("ALTER DATABASE before RENAME TO after");
    await expect(claim("before")).rejects.toThrow(EngineRefused);
    await expect(put("before")).rejects.toThrow('database "before" does not exist');
    expect(await queues.remove(instance(), { database: "before", id: "q" }, signal)).toEqual({
      deleted: true,
      purged: 0,
    });
    expect(await list()).toEqual([{ name: "after", id: "q" }]);
    expect(await claim("after")).toEqual(['{"n": 1}']);
  });

  it("are deleted with it, and delay neither other databases nor the sweep", async () => {
    await put("defaultdb");
    await changes("DROP DATABASE after");
    // The list of databases is as old as the last scan.
    await expect.poll(() => queues.maintain(instance(), signal).then(() => "done", String)).toBe("done");
    await expect(claim("after")).rejects.toThrow("The database after of the queue does not exist. Repeat");
    expect(await list()).toEqual([{ name: "defaultdb", id: "q" }]);
    expect(await claim("defaultdb")).toEqual([]);
    expect(await queues.remove(instance(), { database: "after", id: "q" }, signal)).toEqual({
      deleted: true,
      purged: 0,
    });
  });

  it("accept and deliver nothing while writes are blocked, and settle claimed messages", async () => {
    const call = (request: QueueRequest["request"], blocked: boolean) =>
      queues.call(
        { ...instance(), writesBlocked: blocked },
        "defaultdb",
        create(QueueRequestSchema, { queue: "mail", request }),
        signal,
      );
    const enqueue = (taskId: string) =>
      ({ case: "enqueue", value: create(QueueEnqueueSchema, { taskId, messages: [{ payload: "{}" }] }) }) as const;
    const claimOne = { case: "claim", value: create(QueueClaimSchema, { worker: "w", max: 1 }) } as const;
    const startTask = (kind: string) =>
      ({ case: "beginTask", value: create(QueueTaskBeginSchema, { taskId: kind, kind }) }) as const;
    await call(enqueue("before"), false);
    const { response } = await call(claimOne, false);
    const [claimed] = response.case === "messages" ? response.value.messages : [];
    for (const request of [enqueue("during"), claimOne, startTask("redrive")])
      await expect(call(request, true), request.case).rejects.toMatchObject({ code: "no_room" });
    const value = create(QueueSettleSchema, { verb: QueueVerb.ACK, leased: [{ id: claimed?.id ?? 0n, worker: "w" }] });
    expect(await call({ case: "settle", value }, true)).toMatchObject({ response: { value: { done: [0], lost: [] } } });
    expect((await call(startTask("purge"), true)).response.case).toBe("task");
  });
});
