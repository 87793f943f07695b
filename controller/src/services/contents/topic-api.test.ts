import { type Call, type Idempotency } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { TopicService } from "@holdfast/proto/holdfast/v1/topic_pb.ts";
import { methodsOf, testCall } from "@holdfast/testing/api/test-call.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import { defaultCatalog } from "#catalog/catalog.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { EngineTasks } from "../service/engine-task.ts";
import type { ServiceAccess } from "../service/service-access.ts";
import { createTopicApi } from "./topic-api.ts";

const service = runningService({ id: "s", name: "bus", organizationId: "o" });
const object = { ...service, spec: { ...service.spec, databaseType: "kafka" } };

/** Calls of CreateTopic whose first `lost` responses of the engine do not arrive, and what the engine was sent. */
function createWith(lost: number) {
  const sent: boolean[] = [];
  const stored = { object, modRevision: 1n, createRevision: 1n };
  const access = partial<ServiceAccess>({
    require: () => stored as never,
    requireRunning: () => stored as never,
  });
  const run = (_service: unknown, input: { case: string; value: { mayExist?: boolean } }) => {
    if (input.case !== "createEngineTopic")
      return Promise.resolve({ topics: [{ name: "orders", partitionStates: [] }] });
    sent.push(input.value.mayExist === true);
    return sent.length <= lost
      ? Promise.reject(new HoldfastError("MACHINE_UNREACHABLE", "There was no response."))
      : Promise.resolve({});
  };
  const api = createTopicApi({
    access,
    tasks: partial<EngineTasks>({ run: run as never }),
    cursors: {} as Cursors,
    catalog: defaultCatalog,
    auditedActs: { act: (_, act) => act() },
  });
  const { createTopic } = methodsOf(TopicService, api);
  const call = (key?: string): Call =>
    testCall(key === undefined ? {} : { idempotency: partial<Idempotency>({ key, scope: "anna", bodyHash: "abc" }) });
  return { sent, create: (key?: string) => createTopic({ serviceId: "s", name: "orders" }, call(key)) };
}

test("a repetition by the key of an unanswered request may find its topic, and no other request", async () => {
  const { sent, create } = createWith(2);
  await expect(create("one")).rejects.toThrow("no response");
  await expect(create()).rejects.toThrow("no response");
  for (const key of ["two", undefined, "one", "one"]) await create(key);
  expect(sent).toEqual([false, false, false, false, true, false]);
});
