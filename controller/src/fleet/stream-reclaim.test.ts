import { afterAll, beforeAll, expect, test } from "vitest";
import { taskRequest } from "@holdfast/testing/engines/task-request.ts";
import { startTcpProxy } from "@holdfast/testing/network/tcp-proxy.ts";
import { helloOf, openSession, type TestSession } from "@holdfast/testing/machines/test-agent.ts";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";

let installation: TestInstallation;
let controller: TestController;

const limits = { silenceMs: 5_000, tickMs: 100 };

beforeAll(async () => {
  installation = await newInstallation();
  controller = await startController(installation, "c-1", { limits });
});
afterAll(() => installation?.close());

test("a controller that loses its lease retains its streams, and acts again under another", async () => {
  const other = await startController(installation, "c-lease", { limits });
  const session = openSession(other.dial(await other.newAgent("leased")), helloOf("leased"));
  await session.expect("welcome", ({ withoutLease }) => !withoutLease);
  session.sendHeartbeats();
  const before = other.controllerRegistry.lease();
  const key = "/holdfast/v1/session/leased";
  const { modRevision } = (await other.store.get(key)) ?? { modRevision: 0n };
  await before?.revoke();
  await session.expect("welcome", ({ withoutLease }) => withoutLease);
  session.received.length = 0;
  await session.expect("welcome", ({ withoutLease }) => !withoutLease);
  expect(other.controllerRegistry.lease()).not.toBe(before);
  await expect.poll(async () => (await other.store.get(key))?.modRevision ?? 0n).toBeGreaterThan(modRevision);
  await expect.poll(() => controller.fleet.session("leased")?.controllerId).toBe("c-lease");
  await other.fleet.submit("leased", "t-after", taskRequest);
  await session.expect("task", ({ id }) => id === "t-after");
  session.close();
  await other.close();
});

test("tasks and cancellations from the time without a lease are delivered afterwards", async () => {
  const other = await startController(installation, "c-kept", { limits });
  const session = openSession(other.dial(await other.newAgent("kept")), helloOf("kept"));
  await session.expect("welcome");
  session.sendHeartbeats();
  await other.fleet.submit("kept", "t-cancelled", taskRequest);
  await session.expect("task", ({ id }) => id === "t-cancelled");
  session.received.length = 0;
  await other.controllerRegistry.lease()?.revoke();
  await Promise.all([controller.fleet.submit("kept", "t-asked", taskRequest), controller.fleet.cancel("t-cancelled")]);
  await session.expect("task", ({ id }) => id === "t-asked");
  await session.expect("cancelTask", ({ taskId }) => taskId === "t-cancelled");
  session.close();
  await other.close();
});

test("an outage of etcd ends no stream, and new streams are refused during it", async () => {
  const alone = await newInstallation();
  // Longer than the time between the ends of the two leases, which are renewed independently.
  const options = { limits: { ...limits, leaseGraceMs: 2_000 }, leaseS: 2 };
  const both = [await startController(alone, "c-left", options), await startController(alone, "c-right", options)];
  const [left, right] = both as [TestController, TestController];
  await expect.poll(() => both.map(({ fleet }) => fleet.controllers.length)).toEqual([2, 2]);
  const agents = [await left.newAgent("on-left"), await right.newAgent("on-right")] as const;
  const sessions = [
    openSession(left.dial(agents[0]), helloOf("on-left")),
    openSession(right.dial(agents[1]), helloOf("on-right")),
  ];
  for (const session of sessions) {
    await session.expect("welcome");
    session.sendHeartbeats();
  }
  alone.etcd.signal("SIGSTOP");
  for (const session of sessions) {
    await session.expect("welcome", ({ withoutLease }) => withoutLease);
    session.received.length = 0;
  }
  expect((await openSession(left.dial(agents[0]), helloOf("on-left")).ended).details).toContain("no lease");
  // Three times the grace of a single controller without a lease.
  const acks = (session: TestSession) => session.received.filter(({ frame }) => frame.case === "heartbeatAck").length;
  for (const session of sessions) await expect.poll(() => acks(session)).toBeGreaterThan(20);
  alone.etcd.signal("SIGCONT");
  for (const session of sessions) await session.expect("welcome", ({ withoutLease }) => !withoutLease);
  await expect.poll(() => right.fleet.session("on-left")?.controllerId).toBe("c-left");
  await expect.poll(() => left.fleet.session("on-right")?.controllerId).toBe("c-right");
  await left.fleet.submit("on-right", "t-after", taskRequest);
  await sessions[1]?.expect("task", ({ id }) => id === "t-after");
  expect(sessions.flatMap(({ received }) => received.filter(({ frame }) => frame.case === "goodbye"))).toEqual([]);
  for (const session of sessions) session.close();
  await alone.close();
});

test("a controller that alone has no lease sends its agents to the others", async () => {
  const proxy = await startTcpProxy(installation.etcd.port);
  const cutOff = { ...installation, etcd: { ...installation.etcd, url: `http://127.0.0.1:${proxy.port}` } };
  const options = { limits: { ...limits, leaseGraceMs: 500 }, leaseS: 2 };
  const other = await startController(cutOff, "c-alone", options);
  const agent = await other.newAgent("lonely");
  const session = openSession(other.dial(agent), helloOf("lonely"));
  await session.expect("welcome", ({ controllers }) => controllers.includes(controller.address));
  session.sendHeartbeats();
  proxy.cut();
  await session.expect("welcome", ({ withoutLease }) => withoutLease);
  const { reason, controllers } = await session.expect("goodbye");
  expect(reason).toContain("lost its lease");
  expect(controllers).toContain(controller.address);
  const elsewhere = openSession(controller.dial(agent), helloOf("lonely"));
  await elsewhere.expect("welcome");
  elsewhere.close();
  proxy.heal();
  await other.close();
  proxy.close();
});

test("a retained stream is ended if the machine has a newer one elsewhere", async () => {
  const other = await startController(installation, "c-left", { limits });
  const agent = await other.newAgent("moved");
  const older = openSession(other.dial(agent), helloOf("moved"));
  await older.expect("welcome");
  older.sendHeartbeats();
  const lost = other.controllerRegistry.lease()?.revoke();
  const newer = openSession(controller.dial(agent), helloOf("moved"));
  await newer.expect("welcome");
  newer.sendHeartbeats();
  await lost;
  expect((await older.expect("goodbye")).reason).toContain("the machine has a newer stream at another controller");
  await expect.poll(() => other.fleet.session("moved")?.controllerId).toBe("c-1");
  newer.close();
  await other.close();
});

test("a draining controller sends its agents to the others and accepts none", async () => {
  const other = await startController(installation, "c-drains", { limits });
  const agent = await other.newAgent("drained");
  const session = openSession(other.dial(agent), helloOf("drained"));
  await session.expect("welcome", ({ controllers }) => controllers.includes(other.address));
  await other.controllerRegistry.drain();
  const { reason, controllers } = await session.expect("goodbye");
  expect(reason).toContain("drains");
  expect(controllers).toContain(controller.address);
  expect((await openSession(other.dial(agent), helloOf("drained")).ended).details).toContain("no lease");
  await expect.poll(() => controller.fleet.controllers).not.toContain(other.address);
  await other.close();
});
