import { parseArgs } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import { startTestEtcd } from "@holdfast/test/support/etcd.ts";
import { type AgentIdentity, dial, helloOf, openSession, type TestSession } from "@holdfast/test/support/test-agent.ts";
import { createTestCertificate } from "@holdfast/test/support/test-certificate.ts";
import { waitUntil } from "@holdfast/test/support/wait-until.ts";
import { ms, percentile, print, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";
import { type PeerProcess, startPeer } from "./support/peer-process.ts";
import type { Usage } from "./support/questions.ts";

// Many agents on one controller: what a message and a stream cost, how soon a change is with its agent, what heartbeats
// write. The agents are grpc-js clients in this process, each with a connection of its own; so are those of the peers.
const { values } = parseArgs({
  options: {
    agents: { type: "string", default: "2000" },
    messages: { type: "string", default: "10" },
    "change-seconds": { type: "string", default: "10" },
    "quiet-seconds": { type: "string", default: "60" },
  },
});
const agents = Number(values.agents);
const messages = Number(values.messages);

printHost();
const { cert, key } = await createTestCertificate();
const etcd = await startTestEtcd();
try {
  const ours = await measureOurs();
  const connect = await measurePeer("connect-node");
  const raw = await measurePeer("raw-http2");
  print(
    "CPU a message: ours / connect-node / raw http2",
    [ours, connect, raw].map((each) => `${each.cpuUs.toFixed(1)}`).join(" / ") + " us",
  );
  print(
    "to connect-node; to raw http2",
    `${times(ours.cpuUs / connect.cpuUs)}; ${times(ours.cpuUs / raw.cpuUs)}`,
    "<= 0.25x; <= 1.4x",
  );
  print(
    "memory a stream: ours / connect-node / raw http2",
    [ours, connect, raw].map((each) => `${each.streamKb.toFixed(0)}`).join(" / ") + " KB",
  );
  print(
    "to connect-node; to raw http2",
    `${times(ours.streamKb / connect.streamKb)}; ${times(ours.streamKb / raw.streamKb)}`,
    "<= 0.55x; <= 1.4x",
  );
} finally {
  await etcd.stop();
}

interface Cost {
  readonly cpuUs: number;
  readonly streamKb: number;
}

async function measureOurs(): Promise<Cost> {
  const server = await startPeer("fleet", { etcd: { url: etcd.url }, machines: agents });
  const identities: AgentIdentity[] = [];
  for (let from = 0; from < agents; from += 20) {
    identities.push(
      ...(await server.ask<AgentIdentity[]>({ ask: "enroll", from, count: Math.min(20, agents - from) })),
    );
  }
  const address = String(server.ready["address"]);
  const trustBundle = String(server.ready["trustBundle"]);
  const before = await server.ask<Usage>({ ask: "usage" });
  const sessions = await openAll((index) => {
    const identity = identities[index];
    const client = dial({ address, trustBundle, ...(identity && { identity }) });
    return openSession(client, helloOf(`machine-${index}`));
  });
  await waitUntil("all agents are there", async () => (await server.ask<number>({ ask: "sessions" })) === agents, {
    withinMs: 120_000,
  });
  const cost = await costOf(server, sessions, before);
  await heartbeats(server, sessions);
  await changes(server, sessions);
  await end(server, sessions);
  return cost;
}

async function measurePeer(name: string): Promise<Cost> {
  const server = await startPeer(name, { key, cert });
  const identity = { key, chain: cert, trustBundle: cert };
  const before = await server.ask<Usage>({ ask: "usage" });
  const address = String(server.ready["address"]);
  const sessions = await openAll(() =>
    openSession(dial({ address, trustBundle: cert, identity }), { case: "heartbeat", value: {} }),
  );
  const cost = await costOf(server, sessions, before);
  await end(server, sessions);
  return cost;
}

/** A few at a time, so that no handshake times out. */
async function openAll(open: (index: number) => TestSession): Promise<TestSession[]> {
  const sessions: TestSession[] = [];
  for (let index = 0; index < agents; index += 1) {
    const session = open(index);
    sessions.push(session);
    if (index % 50 === 49) await answered([session], 1);
  }
  await answered(sessions, 1);
  return sessions;
}

/** Memory of the open streams, then CPU of frames that are each answered by one. */
async function costOf(server: PeerProcess, sessions: readonly TestSession[], before: Usage): Promise<Cost> {
  await sleep(2_000);
  const open = await server.ask<Usage>({ ask: "usage" });
  const streamKb = (open.rssBytes - before.rssBytes) / sessions.length / 1_024;
  for (const session of sessions) session.received.length = 0;
  // A first round warms up.
  await exchange(sessions, 2);
  const warm = await server.ask<Usage>({ ask: "usage" });
  await exchange(sessions, messages);
  const done = await server.ask<Usage>({ ask: "usage" });
  return { streamKb, cpuUs: (done.cpuUs - warm.cpuUs) / (messages * sessions.length) };
}

async function exchange(sessions: readonly TestSession[], rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    for (const session of sessions) session.received.length = 0;
    for (const session of sessions) session.say({ case: "heartbeat", value: {} });
    await answered(sessions, 1);
  }
}

/** Throws when any stays without its answers. */
async function answered(sessions: readonly TestSession[], count: number): Promise<void> {
  const silent = () => sessions.filter(({ received }) => received.length < count).length;
  await waitUntil("every agent got its answer", () => silent() === 0, {
    withinMs: 60_000,
    everyMs: 5,
    describe: () => `${silent()} wait`,
  });
}

/** Each agent says that it lives every 5 s, and etcd hears nothing of it. */
async function heartbeats(server: PeerProcess, sessions: readonly TestSession[]): Promise<void> {
  const seconds = Number(values["quiet-seconds"]);
  const before = BigInt(await server.ask<string>({ ask: "revision" }));
  const { cpuUs } = await server.ask<Usage>({ ask: "usage" });
  for (let second = 0; second < seconds; second += 1) {
    const due = sessions.filter((_, index) => index % 5 === second % 5);
    for (const session of due) session.say({ case: "heartbeat", value: {} });
    await sleep(1_000);
  }
  const after = BigInt(await server.ask<string>({ ask: "revision" }));
  const used = (await server.ask<Usage>({ ask: "usage" })).cpuUs - cpuUs;
  print(`etcd writes in ${seconds} s of ${sessions.length} agents' heartbeats`, String(after - before), "0");
  print("core that they take", `${((100 * used) / (seconds * 1_000_000)).toFixed(1)} %`);
}

/** From the controller's decision to the frame at the agent, each written to etcd on its way; agents answer each. */
async function changes(server: PeerProcess, sessions: readonly TestSession[]): Promise<void> {
  const arrived = new Map<string, number>();
  for (const session of sessions) {
    session.call.on("data", ({ frame }) => {
      if (frame.case !== "task") return;
      if (!arrived.has(frame.value.id)) arrived.set(frame.value.id, performance.timeOrigin + performance.now());
      session.say({ case: "taskResult", value: { taskId: frame.value.id } });
    });
  }
  for (const perSecond of [100, 500]) {
    await server.ask({ ask: "change", perSecond, seconds: 2 });
    const asked = await server.ask<Record<string, number>>({
      ask: "change",
      perSecond,
      seconds: Number(values["change-seconds"]),
    });
    const tasks = Object.keys(asked);
    await waitUntil("every task arrived", () => tasks.every((id) => arrived.has(id)), { withinMs: 60_000 });
    await waitUntil("every task ended", async () => (await server.ask<number>({ ask: "unfinished", tasks })) === 0, {
      withinMs: 60_000,
    });
    const delays = tasks.map((id) => (arrived.get(id) ?? 0) - (asked[id] ?? 0));
    const figures = `${ms(percentile(delays, 0.5))} / ${ms(percentile(delays, 0.99))}`;
    print(`change to agent at ${perSecond}/s, p50 / p99`, figures, perSecond === 500 ? "<= 25 ms p99" : "");
  }
}

async function end(server: PeerProcess, sessions: readonly TestSession[]): Promise<void> {
  for (const session of sessions) {
    session.call.on("error", () => undefined);
    session.close();
  }
  await server.end();
}
