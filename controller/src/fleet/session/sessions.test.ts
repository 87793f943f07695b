import { connect } from "node:net";
import { create } from "@bufbuild/protobuf";
import type { ControllerFrame } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { CreateEngineDatabaseSchema, Lane } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { taskRequest } from "@holdfast/testing/engines/task-request.ts";
import {
  type AgentIdentity,
  dial,
  helloOf,
  openSession,
  type TestSession,
} from "@holdfast/testing/machines/test-agent.ts";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { SessionLimits } from "./session-limits.ts";
import { defaultLimits } from "../fleet-limits.ts";

let installation: TestInstallation;
let controller: TestController;
let other: TestSession;

/** Limits as short as possible on a busy machine, where heartbeats are late. */
const limits = {
  silenceMs: 5_000,
  helloTimeoutMs: 3_000,
  checkIntervalMs: 100,
  penaltyMs: 3_000,
  frames: { burst: 200, perSecond: 100 },
  resultBytes: { burst: 1 << 20, perSecond: 8 << 20 },
  queuedFrames: 50,
} satisfies Partial<SessionLimits>;

beforeAll(async () => {
  installation = await newInstallation();
  controller = await startController(installation, "c-1", { limits });
  const agent = await controller.newAgent("witness");
  other = openSession(controller.dial(agent), helloOf("witness"));
  await other.expect("welcome");
  other.sendHeartbeats();
});
afterAll(() => installation?.close());

/** Opens sessions until the machine's penalty has ended, and returns the first that is welcome. */
function openAfterPenalty(identity: AgentIdentity, machineId: string): Promise<TestSession> {
  const client = controller.dial(identity);
  const isWelcome = async () => {
    const session = openSession(client, helloOf(machineId));
    await session.expect("welcome");
    return session;
  };
  return waitUntil("its penalty ends", isWelcome, { everyMs: 250 });
}

/** Checks that another stream than the misbehaving one continues. */
async function expectNobodyElseHurt(): Promise<void> {
  const before = other.received.length;
  await expect.poll(() => other.received.length).toBeGreaterThan(before);
  expect(controller.fleet.session("witness")).toMatchObject({ controllerId: "c-1", agentVersion: "test" });
}

function reasonLogged(machine: string): unknown {
  return controller.logged.find(({ message, fields }) => message === "agent stream cut" && fields.machine === machine)
    ?.fields.reason;
}

test("a stream with a hello for another machine is cut and logged", async () => {
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

test("a flood is cut, logged and refused for the penalty", async () => {
  const agent = await controller.newAgent("flood");
  const session = openSession(controller.dial(agent), helloOf("flood"));
  await session.expect("welcome");
  for (let n = 0; n < 1_000; n += 1) session.send({ case: "heartbeat", value: {} });
  await session.ended;
  expect(reasonLogged("flood")).toBe("too many frames");
  expect((await openSession(controller.dial(agent), helloOf("flood")).ended).details).toBe(
    "the machine's last stream was cut for invalid or too many frames",
  );
  const again = await openAfterPenalty(agent, "flood");
  again.close();
  await expectNobodyElseHurt();
});

test("requested results do not count against the frame rate, and large ones slow a stream", async () => {
  const session = openSession(controller.dial(await controller.newAgent("asked")), helloOf("asked"));
  await session.expect("welcome");
  session.sendHeartbeats();
  const username = "x".repeat(100_000);
  session.call.on("data", ({ frame }: ControllerFrame) => {
    if (frame.case !== "task") return;
    const large = frame.value.lane === Lane.QUERY;
    const output = { case: "listEngineUsers" as const, value: { users: large ? [{ username }] : [] } };
    session.send({ case: "taskResult", value: { taskId: frame.value.id, output } });
  });
  // Ten times the burst of frames, and eight times the burst of bytes.
  for (let n = 0; n < 80; n += 1) {
    await Promise.all(Array.from({ length: 25 }, () => controller.fleet.run("asked", taskRequest, 60_000)));
    await controller.fleet.run("asked", { ...taskRequest, lane: "query" }, 60_000);
  }
  await controller.fleet.submit("asked", "t-asked", taskRequest);
  await expect.poll(() => controller.fleet.task("t-asked")?.status).toBe("completed");
  expect(reasonLogged("asked")).toBeUndefined();
  session.close();
});

test("unrequested and repeated results count against the frame rate", async () => {
  const identity = await controller.newAgent("unasked");
  for (const taskId of ["quick-of-nobody", "t-again"]) {
    const session = await openAfterPenalty(identity, "unasked");
    if (taskId === "t-again") await controller.fleet.submit("unasked", taskId, taskRequest);
    if (taskId === "t-again") await session.expect("task");
    for (let n = 0; n < 1_000; n += 1) session.send({ case: "taskResult", value: { taskId } });
    expect((await session.ended).details).toBe("too many frames");
  }
  await expectNobodyElseHurt();
});

test("a message over the limit ends the stream", async () => {
  const session = openSession(controller.dial(await controller.newAgent("large")), helloOf("large"));
  await session.expect("welcome");
  const reason = "x".repeat(5 << 20);
  session.send({ case: "observation", value: { instance: { reason } } });
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
  session.sendHeartbeats();
  session.call.pause();
  const value = create(CreateEngineDatabaseSchema, { name: "x".repeat(60_000), owner: "y" });
  const input = { case: "createEngineDatabase" as const, value };
  const request = { ...taskRequest, lane: "query", input } as const;
  const runs = Array.from({ length: 400 }, () => controller.fleet.run("slow", request, 60_000));
  const outcomes = await Promise.allSettled(runs);
  expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
  expect(reasonLogged("slow")).toBe("the agent reads too slowly");
  await expectNobodyElseHurt();
  session.close();
});

test("without a machine's certificate there is no session", async () => {
  const { address, authority } = controller;
  const nobody = openSession(dial({ address, trustBundle: authority.trustBundle }), helloOf("witness"));
  expect((await nobody.ended).code).toBe(16);
  const own = await authority.createIdentity({ kind: "dns", id: "dns-1" }, []);
  const identity = { key: own.privateKey, chain: own.certificate, trustBundle: authority.trustBundle };
  const dns = openSession(controller.dial(identity), helloOf("witness"));
  expect((await dns.ended).code).toBe(7);
});

test("heartbeats and unchanged observations write nothing to the store", async () => {
  const session = openSession(controller.dial(await controller.newAgent("quiet")), helloOf("quiet"));
  await session.expect("welcome");
  const instance = { serviceId: "s", nodeId: "n", state: "running", dataBytes: 1_000_000_000n, freeBytes: 5n };
  session.send({ case: "observation", value: { instance } });
  await expect.poll(() => controller.fleet.observation("quiet")?.instance.state).toBe("running");
  await expect
    .poll(async () => (await controller.store.get("/holdfast/v1/observation/quiet")) !== undefined)
    .toBe(true);
  // Writes of other tests' streams are done by now.
  let before = 0n;
  await waitUntil(
    "nothing is written any more",
    async () => {
      const newest = await controller.store.revision();
      const isStill = newest === before;
      before = newest;
      return isStill;
    },
    { everyMs: 300 },
  );
  for (let n = 0; n < 50; n += 1) {
    session.send({ case: "heartbeat", value: {} });
    session.send({
      case: "observation",
      value: { instance: { ...instance, dataBytes: instance.dataBytes + BigInt(n) } },
    });
  }
  const answer = await session.expect("heartbeatAck", ({ sequence }) => sequence === 101n);
  expect(answer.fleetReturnMs).toBe(10 * controller.fleet.streamCount);
  expect(await controller.store.revision()).toBe(before);
  expect(controller.fleet.observation("quiet")?.instance.dataBytes).toBe(1_000_000_049n);
  session.send({ case: "observation", value: { instance: { ...instance, state: "stopped" } } });
  await expect.poll(() => controller.store.revision()).toBe(before + 1n);
  expect(controller.fleet.observation("quiet")?.bootId).toBe(controller.fleet.session("quiet")?.bootId);
  session.close();
});

test("a disconnected machine is noticed within the time promised to users", () => {
  const { heartbeatIntervalMs, silenceMs, checkIntervalMs } = defaultLimits;
  expect(silenceMs + heartbeatIntervalMs + checkIntervalMs).toBeLessThan(15_000);
  // One heartbeat may be lost or late.
  expect(silenceMs).toBeGreaterThan(2 * heartbeatIntervalMs);
});
