import type { Sample } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { taskKind } from "@holdfast/controller/fleet/task/task.ts";
import { keyOf, root } from "@holdfast/controller/kernel/store/resource.ts";
import type { ManagedServiceObject } from "@holdfast/controller/services/service/managed-service.ts";
import { createPrimaryLeaseRules } from "@holdfast/controller/services/service/member/primary-replicas/primary.ts";
import { nodeOf, runningService } from "@holdfast/testing/controller/service-object.ts";
import { taskRequest } from "@holdfast/testing/engines/task-request.ts";
import {
  type AgentIdentity,
  helloOf,
  openSession,
  renew,
  type TestSession,
  writePayload,
} from "@holdfast/testing/machines/test-agent.ts";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const rightRules = createPrimaryLeaseRules({
  get: (id) =>
    id === "service-of-attacker" || id === "service-of-honest" ? { object: serviceOf(id), modRevision: 1n } : undefined,
  untilRevision: async () => undefined,
});

/** The first node of each is the machine of that name, and primary under term 7. */
function serviceOf(id: string): ManagedServiceObject {
  const machine = id.replace("service-of-", "");
  const service = runningService({ id }, { nodes: [nodeOf(machine), nodeOf(`${machine}-2`)] });
  return { ...service, status: { ...service.status, primaryNodeId: machine, term: 7 } };
}

/** A real controller, and an agent with a real certificate that sends harmful messages. */
describe("a compromised machine", () => {
  let installation: TestInstallation;
  let controller: TestController;
  let attacker: AgentIdentity;
  let honest: TestSession;
  const batches: number[] = [];
  const responses: (() => void)[] = [];

  beforeAll(async () => {
    installation = await newInstallation();
    controller = await startController(installation, "c-1", {
      limits: { payloadQuota: { count: 5, bytes: 1 << 20 }, penaltyMs: 100 },
      primaryLeaseRules: rightRules,
      samples: {
        take: async (_, samples: readonly Sample[]) => {
          batches.push(samples.length);
          await new Promise<void>((resolve) => responses.push(resolve));
          return { stored: true, refused: 0, reason: "" };
        },
      },
    });
    attacker = await controller.newAgent("attacker");
    honest = openSession(controller.dial(await controller.newAgent("honest")), helloOf("honest"));
    await honest.expect("welcome");
    honest.sendHeartbeats();
  });
  afterAll(() => installation?.close());

  /** Opens a session, as soon as the controller has closed the one before. */
  function open(): Promise<TestSession> {
    return waitUntil("its session is welcome", async () => {
      const session = openSession(controller.dial(attacker), helloOf("attacker"));
      await session.expect("welcome");
      return session;
    });
  }

  /** Resolves when all frames sent on the stream so far were processed. */
  async function afterAllOf(session: TestSession): Promise<void> {
    const known = session.received.length;
    session.send({ case: "heartbeat", value: {} });
    await waitUntil("it responds", () =>
      session.received.slice(known).some((each) => each.frame.case === "heartbeatAck"),
    );
  }

  const key = `${root}/observation/attacker`;
  const huge = (n: number) => ({
    serviceId: "service-of-attacker",
    state: "running",
    reason: `${n}${"r".repeat(500_000)}`,
    effectiveParameters: Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`p${at}`, "v".repeat(1_000)])),
  });

  test("writes little of its reports to etcd, and seldom, while the newest is in memory", async () => {
    const session = await open();
    for (let n = 0; n < 12; n += 1) session.send({ case: "observation", value: { instance: huge(n) } });
    await waitUntil("the last one is known", () => {
      return controller.fleet.observation("attacker")?.instance.reason.startsWith("11r");
    });
    const { instance } = controller.fleet.observation("attacker") ?? {};
    expect(instance).toMatchObject({ serviceId: "service-of-attacker", state: "running", effectiveParameters: {} });
    expect(instance?.reason.length).toBeLessThanOrEqual(1_000);
    await waitUntil("it is stored", async () => (await controller.store.get(key))?.value.includes("11r") === true);
    expect((await controller.store.get(key))?.value.length).toBeLessThan(4_096);

    const before = await controller.store.revision();
    for (let n = 0; n < 500; n += 1)
      session.send({ case: "observation", value: { instance: { state: "running", reason: `loop ${n}` } } });
    await waitUntil(
      "the last one is known",
      () => controller.fleet.observation("attacker")?.instance.reason === "loop 499",
    );
    expect(Number((await controller.store.revision()) - before)).toBeLessThan(100);
    session.close();
  });

  test("cannot change tasks of others, and its stream is closed for their results", async () => {
    await controller.fleet.submit("honest", "t-honest", taskRequest);
    await honest.expect("task", ({ id }) => id === "t-honest");
    const session = await open();
    session.send({ case: "taskProgress", value: { taskId: "t-honest", step: "attacker", progressPct: 99 } });
    const created = Array.from({ length: 200 }, (_, n) => `t-made-up-${n}`);
    for (const taskId of created)
      session.send({ case: "taskProgress", value: { taskId, step: "attacker", progressPct: 99 } });
    session.send({ case: "taskResult", value: { taskId: "t-honest", failure: { code: "attacker", message: "" } } });
    expect(await session.ended).toMatchObject({ details: "a result for another machine's task" });
    expect(controller.fleet.task("t-honest")?.progress).toBeUndefined();
    honest.send({ case: "taskProgress", value: { taskId: "t-honest", step: "honest", progressPct: 10 } });
    await waitUntil("the machine's own progress is visible", () => {
      return controller.fleet.task("t-honest")?.progress?.step === "honest";
    });
    await controller.fleet.cancel("t-honest");
    await honest.expect("cancelTask", ({ taskId }) => taskId === "t-honest");
  });

  test("ends its own task once, with any number of reports and any results", async () => {
    const session = await open();
    await controller.fleet.submit("attacker", "t-replayed", taskRequest);
    await session.expect("task", ({ id }) => id === "t-replayed");
    const say = (code: string) =>
      session.send({ case: "taskResult", value: { taskId: "t-replayed", failure: { code, message: "" } } });
    say("first");
    await waitUntil("it ended", () => controller.fleet.task("t-replayed")?.result !== undefined);
    const ended = await controller.store.get(keyOf(taskKind, "t-replayed"));
    for (let n = 0; n < 100; n += 1) {
      say(n % 2 === 0 ? "first" : "other");
      session.send({ case: "taskProgress", value: { taskId: "t-replayed", step: "again", progressPct: 1 } });
    }
    session.send({
      case: "taskResult",
      value: { taskId: "t-replayed", output: { case: "listEngineUsers", value: {} } },
    });
    await afterAllOf(session);
    expect(await controller.store.get(keyOf(taskKind, "t-replayed"))).toEqual(ended);
    expect(controller.fleet.task("t-replayed")).toMatchObject({
      status: "failed",
      result: { failure: { code: "first" } },
    });
    session.close();
  });

  test("stores no results under ids that no controller issued", async () => {
    const session = await open();
    const before = await controller.store.revision();
    const ids = ["", "..", "../machine/honest", "t-replayed/../t-honest", "\u0000", "i".repeat(1 << 20)];
    for (const taskId of [...ids, ...Array.from({ length: 200 }, (_, n) => `t-forged-${n}`)])
      session.send({ case: "taskResult", value: { taskId, failure: { code: "attacker", message: "" } } });
    await afterAllOf(session);
    // Leases and presence are still written during this time.
    expect(Number((await controller.store.revision()) - before)).toBeLessThan(20);
    session.close();
  });

  test("gets no lease of another machine's service, nor under a lower or higher term", async () => {
    const session = await open();
    const requests = [
      ["service-of-attacker", 7n, true],
      ["service-of-attacker", 6n, false],
      ["service-of-attacker", 8n, false],
      ["service-of-attacker", 2n ** 62n, false],
      ["service-of-honest", 7n, false],
      ["", 7n, false],
    ] as const;
    for (const [at, [serviceId, term, granted]] of requests.entries()) {
      const number = BigInt(at + 1);
      // Twice: a repeated result is acknowledged as before.
      for (let n = 0; n < 2; n += 1) {
        session.send({ case: "primaryLeaseRequest", value: { serviceId, term, number, engineUnresponsive: false } });
        const response = await session.expect("primaryLeaseResponse", (each) => each.number === number);
        expect([serviceId, term, response.granted]).toEqual([serviceId, term, granted]);
      }
    }
    expect(controller.fleet.leaseReport("honest")?.grantedAgoMs).toBeUndefined();
    session.close();
  });

  test("has its own progress stored in a printable form", async () => {
    const session = await open();
    await controller.fleet.submit("attacker", "t-attacker", taskRequest);
    await session.expect("task", ({ id }) => id === "t-attacker");
    session.send({ case: "taskProgress", value: { taskId: "t-attacker", step: "s".repeat(1 << 20), progressPct: -7 } });
    await waitUntil("it is visible", () => controller.fleet.task("t-attacker")?.progress !== undefined);
    const progress = controller.fleet.task("t-attacker")?.progress;
    expect(progress?.step.length).toBeLessThanOrEqual(128);
    expect(progress?.progressPct).toBe(0);
    session.close();
  });

  test("has an oversized hello rejected", async () => {
    const { value } = helloOf("attacker");
    for (const more of [{ agentVersion: "v".repeat(1 << 20) }, { openTasks: Array.from({ length: 20_000 }, String) }]) {
      await waitUntil("it is refused for that", async () => {
        const session = openSession(controller.dial(attacker), { case: "hello", value: { ...value, ...more } });
        return /hello/.test((await session.ended).details);
      });
    }
  });

  test("stores a limited number of payloads", async () => {
    const client = controller.dial(attacker);
    const refused: string[] = [];
    for (let n = 0; n < 12; n += 1) {
      const blocks = (async function* () {
        yield Buffer.alloc(1_000);
      })();
      await writePayload(client, blocks).catch((error: Error) => refused.push(error.message));
    }
    client.close();
    expect(refused).toHaveLength(7);
    expect(refused[0]).toContain("this machine has too many payloads");
  });

  test("has one batch of samples processed at a time", async () => {
    const session = await open();
    const sample = { timeMs: 0n, slots: [1], values: [1] };
    for (let n = 1; n <= 50; n += 1) session.send({ case: "samples", value: { batch: BigInt(n), samples: [sample] } });
    for (let n = 2; n <= 50; n += 1)
      expect((await session.expect("samplesAck", ({ batch }) => batch === BigInt(n))).stored).toBe(false);
    expect(batches).toHaveLength(1);
    responses[0]?.();
    expect((await session.expect("samplesAck", ({ batch }) => batch === 1n)).stored).toBe(true);
    session.close();
  });

  test("has a limited number of certificates and streams, and affects no other machine", async () => {
    const refusals: string[] = [];
    for (let n = 0; n < 70; n += 1)
      await renew(controller.address, attacker)
        .then((renewed) => (attacker = renewed))
        .catch((error: Error) => refusals.push(error.message));
    expect(refusals.length).toBeGreaterThan(0);
    expect(refusals.at(-1)).toContain("too many certificate requests");

    const clients = Array.from({ length: 10 }, () => controller.dial(attacker));
    const sessions = clients.flatMap((client) =>
      Array.from({ length: 1_000 }, () => openSession(client, helloOf("attacker"))),
    );
    const welcomed = await Promise.all(
      sessions.map(({ ended, expect: matches }) =>
        Promise.race([
          ended.then(() => false),
          matches("welcome").then(
            () => true,
            () => false,
          ),
        ]),
      ),
    );
    expect(welcomed).toHaveLength(10_000);
    expect(welcomed.filter(Boolean).length).toBeLessThan(100);
    for (const client of clients) client.close();
    const before = honest.received.length;
    await waitUntil("the other agent's frame arrives", () => honest.received.length > before);
  });
});
