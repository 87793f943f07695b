import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { etcd } from "./peers/peers-engine.ts";
import { createPeersUnderTest, longMs } from "./peers/peers-under-test.ts";

const skipped = await requireRecipes(import.meta.filename, "trixie");

/** Members of a cluster of peers come and go, while controllers, agents and engines are killed. */
describe.skipIf(skipped)("members of a cluster of peers", () => {
  const fixture = createPeersUnderTest(etcd);
  const {
    hosts,
    hostIs,
    path,
    machines,
    machineOf,
    engineOf,
    killControllers,
    leaderIn,
    writesContinue,
    isComplete,
    ended,
  } = fixture;
  beforeAll(async () => {
    await fixture.start();
    await fixture.form();
  }, longMs);
  afterAll(fixture.remove);

  it("replaces the member of a lost host by a new one, and then removes the lost one", {
    timeout: longMs,
  }, async () => {
    const { nodes } = await fixture.services.get(fixture.id);
    const lost = fixture.others.get("third");
    const lostNode = nodes.find((node) => lost?.processes().machines.some((machine) => machine.id === node.id));
    for (const pid of lost?.processes().all ?? []) killImmediately(pid);
    await writesContinue();
    await hostIs("third", ({ state }) => state === "unreachable");
    const lostOwners = [{ kind: "managed-service", id: fixture.id }];
    await hosts((rpcs) => rpcs.removeHost({ hostId: "third", destroyed: true, lostOwners }));
    await waitUntil("a new member exists", async () => (await fixture.services.get(fixture.id)).nodes.length === 4, {
      withinMs: longMs,
      describe: () => fixture.services.describe(fixture.id),
    });
    killControllers();
    const numbers = nodes.flatMap((node, index) => (node === lostNode ? [] : [index + 1]));
    const after = await isComplete([...numbers, 4]);
    expect(after.nodes.map((node) => node.id)).not.toContain(lostNode?.id);
    const [move] = (await fixture.services.operations(fixture.id)).filter(({ type }) => type === "move_node");
    expect(move).toMatchObject({ status: "completed", error: null });
  });

  it("grows to five, one member after the other, though an agent, an engine and controllers are killed", {
    timeout: longMs,
  }, async () => {
    const before = (await fixture.services.get(fixture.id)).nodes.map((node) => node.id);
    const add = async () => expectStatus(await fixture.platform.rest.post(path("/nodes"), { role: "replica" }), 202);
    await add();
    await waitUntil("the new member's agent runs", () => {
      const added = machines().find((each) => !before.includes(each.id));
      return added?.agent !== undefined && killImmediately(added.agent);
    });
    killControllers();
    const four = await fixture.services.settled(fixture.id, "Running", longMs);
    expect(four.nodes).toHaveLength(4);
    await add();
    killControllers();
    await waitUntil("the new member's engine runs", () => {
      const added = machines().find((each) => !four.nodes.some((node) => node.id === each.id));
      return added?.engine !== undefined && killImmediately(added.engine);
    });
    const five = await fixture.services.settled(fixture.id, "Running", longMs);
    expect(five.nodes).toHaveLength(5);
    await isComplete();
    const sixth = await fixture.platform.rest.post<ProblemJson>(path("/nodes"), { role: "replica" });
    expect(expectStatus(sixth, 422).json.detail).toContain("1, 3, 4, 5 nodes");
  });

  it("shrinks to three with its leader among those that leave, each drained first", { timeout: longMs }, async () => {
    for (const count of [4, 3]) {
      const service = await fixture.services.get(fixture.id);
      const leader = leaderIn(service);
      expectStatus(await fixture.platform.rest.delete(path(`/nodes/${leader}`)), 202);
      const { operation: started } = await fixture.services.get(fixture.id);
      await waitUntil(
        "the drain is shown",
        async () => (await fixture.maintenance.operation(started?.id ?? "")).step === "DrainMember",
        { describe: () => fixture.services.describe(fixture.id) },
      );
      killControllers();
      const follower = service.nodes.find((node) => node.id !== leader)?.id ?? "";
      // First the agent of the member that leaves is killed, then the engine of a member that remains.
      killImmediately((count === 4 ? machineOf(leader)?.agent : engineOf(follower)) ?? 0);
      expect(await ended(started?.id ?? "")).toMatchObject({ status: "completed", error: null });
      const after = await fixture.services.settled(fixture.id, "Running", longMs);
      expect(after.nodes.map((node) => node.id)).not.toContain(leader);
      expect(after.nodes).toHaveLength(count);
      await isComplete();
    }
    const { nodes } = await fixture.services.get(fixture.id);
    const refused = await fixture.platform.rest.delete<ProblemJson>(path(`/nodes/${nodes[0]?.id}`));
    expect(expectStatus(refused, 422).json.detail).toContain("1, 3, 4, 5 nodes");
  });

  it("has its members moved away from a host that is drained", { timeout: longMs }, async () => {
    const { nodes } = await fixture.services.get(fixture.id);
    const onSecond = () => {
      const { machines: own = [] } = fixture.others.get("second")?.processes() ?? {};
      return own.map((machine) => machine.id);
    };
    const moving = onSecond().toSorted();
    expect(moving).not.toEqual([]);
    await hosts((rpcs) => rpcs.drainHost({ hostId: "second" }));
    killControllers();
    await hostIs("second", ({ drain }) => drain?.state === "drained" && drain.left === 0);
    expect(onSecond()).toEqual([]);
    const after = await isComplete();
    const ids = after.nodes.map((node) => node.id);
    const remaining = nodes.map((node) => node.id).filter((nodeId) => !ids.includes(nodeId));
    expect(remaining.toSorted()).toEqual(moving);
    expect(ids).toHaveLength(nodes.length);
  });

  it("stops and starts all members, though controllers and an agent are killed", { timeout: longMs }, async () => {
    expectStatus(await fixture.platform.rest.post(path("/stop")), 202);
    killControllers();
    await fixture.services.settled(fixture.id, "Stopped", longMs);
    expect(machines().filter(({ engine }) => engine !== undefined)).toEqual([]);
    expectStatus(await fixture.platform.rest.post(path("/start")), 202);
    await waitUntil("a machine's agent runs", () => {
      const [first] = machines();
      return first?.agent !== undefined && killImmediately(first.agent);
    });
    killControllers();
    await fixture.services.settled(fixture.id, "Running", longMs);
    await isComplete();
  });

  it("has lost no acknowledged write", { timeout: longMs }, async () => {
    await fixture.stopWriting();
    expect(await fixture.writer.missing()).toEqual([]);
  });
});
