import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { CreateEngineDatabaseSchema, ListEngineUsersSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "../../../../test/support/etcd.ts";
import { startTcpProxy } from "../../../../test/support/tcp-proxy.ts";
import { dial, helloOf, openSession, type TestSession } from "../../../../test/support/test-agent.ts";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "../../../../test/support/test-fleet.ts";
import { usualLimits } from "../fleet-limits.ts";

let etcd: TestEtcd;
let installation: TestInstallation;
let controller: TestController;
let witness: TestSession;

const limits = {
  silenceMs: 1_200,
  helloMs: 600,
  tickMs: 100,
  penaltyMs: 300,
  frames: { burst: 200, perSecond: 100 },
  queuedFrames: 50,
};

beforeAll(async () => {
  etcd = await startTestEtcd();
  installation = await newInstallation(etcd);
  controller = await startController(installation, "c-1", { limits });
  const agent = await controller.newAgent("witness");
  witness = openSession(controller.dial(agent), helloOf("witness"));
  await witness.expect("welcome");
  beating(witness);
});
afterAll(async () => {
  await controller?.close();
  await installation?.close();
  await etcd?.stop();
});

const taskForLeased = {
  ownerId: "o",
  generation: 1,
  term: 0,
  lane: "control",
  input: { case: "listEngineUsers", value: create(ListEngineUsersSchema) },
  deadlineMs: 60_000,
} as const;

function beating(session: TestSession): void {
  const timer = setInterval(() => session.say({ case: "heartbeat", value: {} }), 300);
  void session.ended.then(() => clearInterval(timer));
}

/** The stream beside the one that misbehaved goes on. */
async function expectNobodyElseHurt(): Promise<void> {
  const before = witness.received.length;
  await expect.poll(() => witness.received.length).toBeGreaterThan(before);
  expect(controller.fleet.session("witness")).toMatchObject({ controllerId: "c-1", agentVersion: "test" });
}

function reasonLogged(machine: string): unknown {
  return controller.logged.find(({ message, fields }) => message === "agent stream cut" && fields.machine === machine)
    ?.fields.reason;
}

test("a stream that speaks for another machine is cut and logged", async () => {
  const session = openSession(controller.dial(await controller.newAgent("liar")), helloOf("witness"));
  expect(await session.ended).toEqual({ code: 7, details: "hello for another machine" });
  expect(reasonLogged("liar")).toBe("hello for another machine");
  await expectNobodyElseHurt();
});

test("bytes that are no frame cut the stream and are logged", async () => {
  const client = controller.dial(await controller.newAgent("junk"));
  const raw = (bytes: Buffer) => bytes;
  const call = client.makeBidiStreamRequest("/holdfast.agent.v1.AgentService/Session", raw, raw);
  call.on("error", () => undefined);
  const ended = new Promise<{ code: number }>((resolve) => void call.on("status", resolve));
  call.resume();
  call.write(Buffer.from("ffffffffffffffffffffffff", "hex"));
  expect((await ended).code).toBe(3);
  expect(reasonLogged("junk")).toBe("not a frame");
  await expectNobodyElseHurt();
});

test("junk in place of TLS ends that connection only", async () => {
  const socket = connect(controller.fleet.port, "127.0.0.1");
  const closed = new Promise((resolve) => void socket.on("close", resolve));
  socket.on("error", () => undefined);
  socket.write(Buffer.alloc(4096, 0x41));
  socket.resume();
  await closed;
  await expectNobodyElseHurt();
});

test("a flood is cut, logged and kept out for a moment", async () => {
  const agent = await controller.newAgent("flood");
  const session = openSession(controller.dial(agent), helloOf("flood"));
  await session.expect("welcome");
  for (let n = 0; n < 1_000; n += 1) session.say({ case: "heartbeat", value: {} });
  await session.ended;
  expect(reasonLogged("flood")).toBe("too many frames");
  expect((await openSession(controller.dial(agent), helloOf("flood")).ended).details).toBe("cut a moment ago");
  await delay(500);
  const again = openSession(controller.dial(agent), helloOf("flood"));
  await again.expect("welcome");
  again.close();
  await expectNobodyElseHurt();
});

test("a message over the limit ends the stream", async () => {
  const session = openSession(controller.dial(await controller.newAgent("large")), helloOf("large"));
  await session.expect("welcome");
  const reason = "x".repeat(5 << 20);
  session.say({ case: "observation", value: { instance: { reason } } });
  expect((await session.ended).code).toBe(8);
  await expectNobodyElseHurt();
});

test("a stream without hello, and one that falls silent, are cut and logged", async () => {
  const mute = openSession(controller.dial(await controller.newAgent("mute")));
  const silent = openSession(controller.dial(await controller.newAgent("silent")), helloOf("silent"));
  await silent.expect("welcome");
  await Promise.all([mute.ended, silent.ended]);
  expect(reasonLogged("mute")).toBe("no hello");
  expect(reasonLogged("silent")).toBe("silent");
  expect(controller.fleet.session("silent")).toBeUndefined();
  await expectNobodyElseHurt();
});

test("an agent that reads nothing is cut when its queue is full, and its connection ends", async () => {
  const session = openSession(controller.dial(await controller.newAgent("slow")), helloOf("slow"));
  await session.expect("welcome");
  beating(session);
  session.call.pause();
  const value = create(CreateEngineDatabaseSchema, { name: "x".repeat(60_000), owner: "y" });
  const input = { case: "createEngineDatabase" as const, value };
  const request = { ownerId: "o", generation: 1, term: 0, lane: "query" as const, input, deadlineMs: 60_000 };
  const runs = Array.from({ length: 400 }, () => controller.fleet.run("slow", request, 60_000));
  const outcomes = await Promise.allSettled(runs);
  expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
  expect(reasonLogged("slow")).toBe("the agent reads too slowly");
  await expectNobodyElseHurt();
  session.close();
});

test("without a certificate, or with another part's, there is no session", async () => {
  const { address, authority } = controller;
  const nobody = openSession(dial({ address, trustBundle: authority.trustBundle }), helloOf("witness"));
  expect((await nobody.ended).code).toBe(16);
  const own = await authority.makeIdentity({ kind: "dns", id: "dns-1" }, []);
  const identity = { key: own.privateKey, chain: own.certificate, trustBundle: authority.trustBundle };
  const dns = openSession(controller.dial(identity), helloOf("witness"));
  expect((await dns.ended).code).toBe(7);
});

test("heartbeats and unchanged observations write nothing to the store", async () => {
  const session = openSession(controller.dial(await controller.newAgent("quiet")), helloOf("quiet"));
  await session.expect("welcome");
  const instance = { serviceId: "s", nodeId: "n", state: "running", dataBytes: 1_000_000_000n, freeBytes: 5n };
  session.say({ case: "observation", value: { instance } });
  await expect.poll(() => controller.fleet.observation("quiet")?.instance.state).toBe("running");
  await expect
    .poll(async () => (await controller.store.get("/holdfast/v1/observation/quiet")) !== undefined)
    .toBe(true);
  await delay(100);
  const before = await controller.store.revision();
  for (let n = 0; n < 50; n += 1) {
    session.say({ case: "heartbeat", value: {} });
    session.say({
      case: "observation",
      value: { instance: { ...instance, dataBytes: instance.dataBytes + BigInt(n) } },
    });
  }
  const answer = await session.expect("heartbeatAck", ({ sequence }) => sequence === 101n);
  expect(answer.fleetReturnMs).toBe(5 * controller.fleet.held);
  expect(await controller.store.revision()).toBe(before);
  expect(controller.fleet.observation("quiet")?.instance.dataBytes).toBe(1_000_000_049n);
  session.say({ case: "observation", value: { instance: { ...instance, state: "stopped" } } });
  await expect.poll(() => controller.store.revision()).toBe(before + 1n);
  expect(controller.fleet.observation("quiet")?.bootId).toBe(controller.fleet.session("quiet")?.bootId);
  session.close();
});

test("a controller that loses its lease keeps its streams, says so, and acts on them again under another", async () => {
  const other = await startController(installation, "c-lease", { limits });
  const session = openSession(other.dial(await other.newAgent("leased")), helloOf("leased"));
  await session.expect("welcome", ({ withoutLease }) => !withoutLease);
  beating(session);
  const before = other.membership.lease();
  const key = "/holdfast/v1/session/leased";
  const { modRevision } = (await other.store.get(key)) ?? { modRevision: 0n };
  await before?.revoke();
  await session.expect("welcome", ({ withoutLease }) => withoutLease);
  session.received.length = 0;
  await session.expect("welcome", ({ withoutLease }) => !withoutLease);
  expect(other.membership.lease()).not.toBe(before);
  await expect.poll(async () => (await other.store.get(key))?.modRevision ?? 0n).toBeGreaterThan(modRevision);
  await expect.poll(() => controller.fleet.session("leased")?.controllerId).toBe("c-lease");
  await other.fleet.submit("leased", "t-after", taskForLeased);
  await session.expect("task", ({ id }) => id === "t-after");
  session.close();
  await other.close();
});

test("a task and a cancellation of the time without a lease go down the stream that was kept", async () => {
  const other = await startController(installation, "c-kept", { limits });
  const session = openSession(other.dial(await other.newAgent("kept")), helloOf("kept"));
  await session.expect("welcome");
  beating(session);
  await other.fleet.submit("kept", "t-cancelled", taskForLeased);
  await session.expect("task", ({ id }) => id === "t-cancelled");
  session.received.length = 0;
  await other.membership.lease()?.revoke();
  await Promise.all([
    controller.fleet.submit("kept", "t-asked", taskForLeased),
    controller.fleet.cancel("t-cancelled"),
  ]);
  await session.expect("task", ({ id }) => id === "t-asked");
  await session.expect("cancelTask", ({ taskId }) => taskId === "t-cancelled");
  session.close();
  await other.close();
});

test("an outage of etcd ends no stream, however long it is: they are used again after it, and who dials meanwhile is refused", async () => {
  const lonely = await startTestEtcd();
  const alone = await newInstallation(lonely);
  const options = { limits: { ...limits, withoutLeaseMs: 300 }, leaseS: 2 };
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
    beating(session);
  }
  lonely.signal("SIGSTOP");
  for (const session of sessions) {
    await session.expect("welcome", ({ withoutLease }) => withoutLease);
    session.received.length = 0;
  }
  expect((await openSession(left.dial(agents[0]), helloOf("on-left")).ended).details).toContain("no lease");
  // Ten heartbeats: ten times as long as a controller that alone has no lease keeps them.
  const acks = (session: TestSession) => session.received.filter(({ frame }) => frame.case === "heartbeatAck").length;
  for (const session of sessions) await expect.poll(() => acks(session), { timeout: 15_000 }).toBeGreaterThan(10);
  lonely.signal("SIGCONT");
  for (const session of sessions) await session.expect("welcome", ({ withoutLease }) => !withoutLease);
  await expect.poll(() => right.fleet.session("on-left")?.controllerId, { timeout: 20_000 }).toBe("c-left");
  await expect.poll(() => left.fleet.session("on-right")?.controllerId, { timeout: 20_000 }).toBe("c-right");
  await left.fleet.submit("on-right", "t-after", taskForLeased);
  await sessions[1]?.expect("task", ({ id }) => id === "t-after");
  expect(sessions.flatMap(({ received }) => received.filter(({ frame }) => frame.case === "goodbye"))).toEqual([]);
  for (const session of sessions) session.close();
  await alone.close();
  await lonely.stop();
});

test("a controller that alone has no lease lets its agents go to the others", async () => {
  const proxy = await startTcpProxy(etcd.port);
  const cutOff = { ...installation, etcd: { ...etcd, url: `http://127.0.0.1:${proxy.port}` } };
  const options = { limits: { ...limits, withoutLeaseMs: 500 }, leaseS: 2 };
  const other = await startController(cutOff, "c-alone", options);
  const agent = await other.newAgent("lonely");
  const session = openSession(other.dial(agent), helloOf("lonely"));
  await session.expect("welcome", ({ controllers }) => controllers.includes(controller.address));
  beating(session);
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

test("a stream that was kept gives way to a newer one elsewhere", async () => {
  const other = await startController(installation, "c-left", { limits });
  const agent = await other.newAgent("moved");
  const older = openSession(other.dial(agent), helloOf("moved"));
  await older.expect("welcome");
  beating(older);
  const lost = other.membership.lease()?.revoke();
  const newer = openSession(controller.dial(agent), helloOf("moved"));
  await newer.expect("welcome");
  beating(newer);
  await lost;
  expect((await older.expect("goodbye")).reason).toContain("a newer stream is elsewhere");
  await expect.poll(() => other.fleet.session("moved")?.controllerId, { timeout: 20_000 }).toBe("c-1");
  newer.close();
  await other.close();
});

test("a controller that drains sends its agents to the others and takes none", async () => {
  const other = await startController(installation, "c-drains", { limits });
  const agent = await other.newAgent("drained");
  const session = openSession(other.dial(agent), helloOf("drained"));
  await session.expect("welcome", ({ controllers }) => controllers.includes(other.address));
  await other.membership.drain();
  const { reason, controllers } = await session.expect("goodbye");
  expect(reason).toContain("drains");
  expect(controllers).toContain(controller.address);
  expect((await openSession(other.dial(agent), helloOf("drained")).ended).details).toContain("no lease");
  await expect.poll(() => controller.fleet.controllers).not.toContain(other.address);
  await other.close();
});

test("a machine that neither is heard nor hears is known to be silent within what users are promised", () => {
  const { heartbeatIntervalMs, silenceMs, tickMs } = usualLimits;
  expect(silenceMs + heartbeatIntervalMs + tickMs).toBeLessThan(15_000);
  // One heartbeat may be lost, or late, without an alarm.
  expect(silenceMs).toBeGreaterThan(2 * heartbeatIntervalMs);
});
