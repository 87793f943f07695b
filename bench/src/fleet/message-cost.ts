import { setTimeout as sleep } from "node:timers/promises";
import { dial, helloOf, openSession, type TestSession } from "@holdfast/testing/machines/test-agent.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { PeerProcess } from "../support/peer-process.ts";
import type { Usage } from "../support/peer-queries.ts";
import type { BenchInstallation } from "./installation.ts";

/** A server's cost of a heartbeat with its response, and of an open stream. */
export interface MessageCost {
  readonly cpuUs: number;
  readonly streamKb: number;
}

/** The agents are plain grpc-js clients in this process, each with its machine's certificate and connection. */
export async function measureMessageCost(
  server: PeerProcess,
  { machineIds, identityOf }: BenchInstallation,
  rounds: number,
): Promise<MessageCost> {
  const address = String(server.ready["address"]);
  const before = await server.query<Usage>({ query: "usage" });
  const sessions: TestSession[] = [];
  for (const [index, id] of machineIds.entries()) {
    const identity = identityOf(id);
    const session = openSession(dial({ address, trustBundle: identity.trustBundle, identity }), helloOf(id));
    sessions.push(session);
    // A few at a time, so that no handshake times out.
    if (index % 50 === 49) await answered([session]);
  }
  await answered(sessions);
  await sleep(2_000);
  const open = await server.query<Usage>({ query: "usage" });
  // The first rounds are warm-ups.
  await exchange(sessions, 3);
  const warm = await server.query<Usage>({ query: "usage" });
  await exchange(sessions, rounds);
  const done = await server.query<Usage>({ query: "usage" });
  for (const session of sessions) session.close();
  return {
    streamKb: (open.rssBytes - before.rssBytes) / sessions.length / 1_024,
    cpuUs: (done.cpuUs - warm.cpuUs) / (rounds * sessions.length),
  };
}

async function exchange(sessions: readonly TestSession[], rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    for (const session of sessions) session.received.length = 0;
    for (const session of sessions) session.send({ case: "heartbeat", value: {} });
    await answered(sessions);
  }
}

/** Throws when a stream ended, or remains without a response. */
async function answered(sessions: readonly TestSession[]): Promise<void> {
  const silent = () => sessions.filter(({ received }) => received.length === 0);
  await waitUntil("every agent got its answer", () => silent().length === 0, {
    withinMs: 120_000,
    everyMs: 5,
    async describe() {
      const [first] = silent();
      const status = await Promise.race([first?.ended, sleep(100, "is open")]);
      return `${silent().length} of ${sessions.length} wait; the first ${JSON.stringify(status)}`;
    },
  });
}
