import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { etcd } from "./peers/peers-engine.ts";
import { createPeersUnderTest, longMs } from "./peers/peers-under-test.ts";

const skipped = await requireRecipes(import.meta.filename, "trixie");

/** The life of a cluster of peers on one host; the cases of several hosts are in separate files. */
describe.skipIf(skipped)("a cluster of peers", () => {
  const fixture = createPeersUnderTest(etcd, []);
  const { path, machines, engineOf, killControllers, leaderIn, isComplete, ended } = fixture;
  beforeAll(fixture.start, longMs);
  afterAll(fixture.remove);

  it("grows from one member to three by one operation, though an agent and the controllers are killed", {
    timeout: longMs,
  }, async () => {
    const { nodes: first } = await fixture.form(1);
    const add = <T>(count?: number) =>
      fixture.platform.rest.post<T>(path("/nodes"), { role: "replica", ...(count !== undefined && { count }) });
    expect(expectStatus(await add<ProblemJson>(), 422).json.detail).toContain("with 2, the loss of either one");
    const invalid = expectStatus(await add<ProblemJson>(5), 400).json;
    expect(invalid.errors).toMatchObject([{ field: "count" }]);
    const { json: added } = expectStatus(await add<ServiceJson["nodes"][number]>(2), 202);
    await waitUntil("an agent of a new member runs", () => {
      const machine = machines().find((each) => !first.some((node) => node.id === each.id));
      return machine?.agent !== undefined && killImmediately(machine.agent);
    });
    killControllers();
    expect(await ended(added.operation_id ?? "")).toMatchObject({ type: "add_node", status: "completed", error: null });
    const service = await isComplete([1, 2, 3]);
    expect(service.nodes[1]?.id).toBe(added.id);
  });

  it("continues when its leader's engine is killed, loses no acknowledged write, and is deleted", {
    timeout: longMs,
  }, async () => {
    killImmediately(engineOf(leaderIn(await fixture.services.get(fixture.id))) ?? 0);
    await fixture.writesContinue();
    await isComplete([1, 2, 3]);
    await fixture.stopWriting();
    expect(await fixture.writer.missing()).toEqual([]);
    expectStatus(await fixture.platform.rest.delete(path()), 202);
    await waitUntil("all machines are removed", () => machines().length === 0, {
      withinMs: longMs,
      describe: () => fixture.services.describe(fixture.id),
    });
  });
});
