import type { Redirect } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type AgentIdentity, dial, helloOf, openSession } from "@holdfast/testing/machines/test-agent.ts";
import { newInstallation, startController, type TestInstallation } from "@holdfast/testing/controller/test-fleet.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { excessStreams } from "./rebalancer.ts";

let installation: TestInstallation;

beforeAll(async () => {
  installation = await newInstallation();
});
afterAll(() => installation?.close());

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  [    0,     0, 1, "before",    0],
  [1_000, 1_000, 1, "before",    0],
  [1_000, 1_000, 2, "before",  500],
  [  500, 1_000, 2, "before",    0],
  [  600, 1_000, 2, "before",    0],
  [  600, 1_000, 2, "rebalancing",   100],
  [  500, 1_000, 2, "rebalancing",     0],
  [  634, 1_000, 2, "before",  134],
  [   10,    12, 2, "before",    0],
  [    6,    11, 2, "rebalancing",     0],
  [9_000, 9_000, 3, "before", 6_000],
])("of %i streams here, of %i in all at %i controllers, %s: %i are redirected", (streams, all, controllers, when, surplus) => {
  expect(excessStreams(streams, all, controllers, when === "rebalancing")).toBe(surplus);
});

test("agents are redirected to a new controller, until each has its share", async () => {
  // These agents send no heartbeats, however long it takes until all are connected.
  const limits = { silenceMs: 600_000, rebalance: { intervalMs: 100, batchSize: 4 } };
  const first = await startController(installation, "c-1", { limits });
  const identities = new Map<string, AgentIdentity>();
  const open = async (machineId: string, address: string) => {
    const identity = identities.get(machineId) ?? (await first.newAgent(machineId));
    identities.set(machineId, identity);
    const session = openSession(dial({ address, trustBundle: identity.trustBundle, identity }), helloOf(machineId));
    await session.expect("welcome");
    const goOn = ({ controller }: Redirect) => open(machineId, controller);
    // Streams that are being opened end with the test.
    session
      .expect("redirect")
      .then(goOn)
      .catch(() => undefined);
  };
  for (let n = 0; n < 40; n += 1) await open(`m-${n}`, first.address);
  const second = await startController(installation, "c-2", { limits });
  await waitUntil("each has its share", () => second.fleet.streamCount >= 20, {
    describe: () => `${first.fleet.streamCount} and ${second.fleet.streamCount}`,
  });
  await waitUntil("the streams of before have ended", () => first.fleet.streamCount + second.fleet.streamCount === 40);
  const ofFirst = () => [...first.fleet.sessions()].filter(([, { controllerId }]) => controllerId === "c-1").length;
  await waitUntil("every controller sees all streams", () => ofFirst() === first.fleet.streamCount, {
    describe: () => `${ofFirst()} are known of ${first.fleet.streamCount}`,
  });
  await second.close();
  await first.close();
});
