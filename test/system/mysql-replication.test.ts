import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OperationJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { killAtOnce } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type ReplicatedShop, startReplicatedShop } from "./mysql/replicated-shop.ts";

const skip = await requireRecipes(import.meta.filename, "mysql");

describe.skipIf(skip !== undefined)("a MySQL of two nodes in mode sync", () => {
  let its: ReplicatedShop;

  beforeAll(async () => {
    its = await startReplicatedShop();
  });
  afterAll(() => its?.remove());

  it("has a replica that receives rows, reports its lag and accepts no writes", async () => {
    const { primary, replica, replicaHost } = await its.rolesNow();
    await its.writesGoOn();
    const count = its.numbers.length;
    const rows = () => its.ask<{ count: number }>("SELECT COUNT(*) AS count FROM ledger", { host: replicaHost });
    await waitUntil("rows arrive at the replica", async () => ((await rows())[0]?.count ?? 0) >= count);
    expect(await its.statusOf(replica)).toMatchObject({ role: "replica", connected: true, sync_state: "streaming" });
    expect(await its.statusOf(primary)).toMatchObject({ role: "primary", connected: true });
    await expect(its.ask("INSERT INTO ledger VALUES (0)", { host: replicaHost })).rejects.toThrow("read-only");
  });

  it("has each user on both nodes", async () => {
    const { replicaHost: host } = await its.rolesNow();
    const reader = { username: "reader", role: "readonly" };
    expectStatus(await its.platform.rest.post(its.path("/database-users"), reader), 201);
    const reveal = await its.platform.rest.post<{ password: string }>(
      its.path("/database-users/reader/reveal-password"),
    );
    const { password } = expectStatus(reveal, 200).json;
    const signedIn = () => its.ask("SELECT 1 AS one", { host, user: "reader", password }).catch(() => []);
    await waitUntil("the user is at the replica", async () => (await signedIn()).length > 0);
  });

  it("promotes the replica in a switchover, and the old primary follows", async () => {
    const { primary, replica, term } = await its.rolesNow();
    await its.follows(replica);
    const response = await its.platform.rest.post<OperationJson>(its.path(`/nodes/${replica}/failover`), {});
    expectStatus(response, 202);
    await its.services.settled(its.shop.service.id, "Running");
    const operation = await its.platform.rest.get<OperationJson>(`/operations/${response.json.id}`);
    expect(operation.json).toMatchObject({ status: "completed", error: null });
    expect(await its.rolesNow()).toMatchObject({ primary: replica, replica: primary, term: term + 1 });
    await its.writesGoOn();
    await its.follows(primary);
  });

  it("goes on when the engine of its primary is killed", async () => {
    const { primary } = await its.rolesNow();
    killAtOnce(its.engineOf(primary));
    await its.writesGoOn();
  });

  it("has every acknowledged row", async () => {
    expect(await its.lost()).toEqual([]);
    expect(its.numbers.length).toBeGreaterThan(20);
  });
});
