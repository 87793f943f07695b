import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { ListEngineUsersSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { newInstallation, startController } from "@holdfast/test/support/test-fleet.ts";
import type { TestEtcd } from "@holdfast/test/support/etcd.ts";
import { answerQuestions } from "../support/questions.ts";

// One controller's fleet: the real listener, sessions, tasks and store, alone in this process.
const { etcd, machines } = JSON.parse(process.argv[2] ?? "") as { etcd: Pick<TestEtcd, "url">; machines: number };
const installation = await newInstallation(etcd as TestEtcd);
const controller = await startController(installation, "controller-bench");
const ids = Array.from({ length: machines }, (_, index) => `machine-${index}`);

answerQuestions({
  /** Certificates for agents, bought with tokens as machines do. */
  enroll: async ({ from, count }: { from: number; count: number }) =>
    Promise.all(ids.slice(from, from + count).map((id) => controller.newAgent(id))),
  sessions: async () => ids.filter((id) => controller.fleet.session(id) !== undefined).length,
  revision: async () => String(await controller.store.revision()),
  /** Durable tasks at an even rate: a put, the watch, the stream. Answers when each was handed over, by task id. */
  async change({ perSecond, seconds }: { perSecond: number; seconds: number }) {
    const asked: Record<string, number> = {};
    const pending: Promise<void>[] = [];
    const begun = performance.now();
    for (let sent = 0; sent < perSecond * seconds; sent += 1) {
      const dueMs = begun + (sent * 1_000) / perSecond - performance.now();
      if (dueMs > 1) await new Promise((resolve) => setTimeout(resolve, dueMs));
      const taskId = `bench-${randomUUID()}`;
      const machineId = ids[Math.floor(Math.random() * ids.length)] ?? "";
      asked[taskId] = performance.timeOrigin + performance.now();
      const input = { case: "listEngineUsers" as const, value: create(ListEngineUsersSchema) };
      const request = {
        ownerId: `service-of-${machineId}`,
        generation: 1,
        term: 1,
        lane: "control",
        input,
        deadlineMs: 60_000,
      } as const;
      pending.push(controller.fleet.submit(machineId, taskId, request));
    }
    await Promise.all(pending);
    return asked;
  },
  unfinished: async ({ tasks }: { tasks: string[] }) =>
    tasks.filter((id) => controller.fleet.task(id)?.status !== "completed").length,
});
process.send?.({ address: controller.address, trustBundle: controller.authority.trustBundle });
