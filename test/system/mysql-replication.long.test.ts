import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OperationJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { poolerCases } from "./mysql/pooler.ts";
import { type ReplicatedShop, startReplicatedShop } from "./mysql/replicated-shop.ts";

const skip = await requireRecipes(import.meta.filename, "mysql");

describe.skipIf(skip !== undefined)("a MySQL of two nodes in mode sync", () => {
  let fixture: ReplicatedShop;

  beforeAll(async () => {
    fixture = await startReplicatedShop();
  });
  afterAll(() => fixture?.remove());

  it("has a replica that receives rows, reports its lag and accepts no writes", async () => {
    const { primary, replica, replicaHost } = await fixture.rolesNow();
    await fixture.writesContinue();
    const count = fixture.numbers.length;
    const rows = () => fixture.query<{ count: number }>("SELECT COUNT(*) AS count FROM ledger", { host: replicaHost });
    await waitUntil("rows arrive at the replica", async () => ((await rows())[0]?.count ?? 0) >= count);
    expect(await fixture.statusOf(replica)).toMatchObject({
      role: "replica",
      connected: true,
      sync_state: "streaming",
    });
    expect(await fixture.statusOf(primary)).toMatchObject({ role: "primary", connected: true });
    await expect(fixture.query("INSERT INTO ledger VALUES (0)", { host: replicaHost })).rejects.toThrow("read-only");
  });

  it("has each user on both nodes", async () => {
    const { replicaHost: host } = await fixture.rolesNow();
    const reader = { username: "reader", role: "readonly" };
    expectStatus(await fixture.platform.rest.post(fixture.path("/database-users"), reader), 201);
    const reveal = await fixture.platform.rest.post<{ password: string }>(
      fixture.path("/database-users/reader/reveal-password"),
    );
    const { password } = expectStatus(reveal, 200).json;
    const signedIn = () => fixture.query("SELECT 1 AS one", { host, user: "reader", password }).catch(() => []);
    await waitUntil("the user is at the replica", async () => (await signedIn()).length > 0);
  });

  it("promotes the replica in a switchover, and the old primary follows", async () => {
    const { primary, replica, term } = await fixture.rolesNow();
    await fixture.follows(replica);
    const response = await fixture.platform.rest.post<OperationJson>(fixture.path(`/nodes/${replica}/failover`), {});
    expectStatus(response, 202);
    await fixture.services.settled(fixture.shop.service.id, "Running");
    const operation = await fixture.platform.rest.get<OperationJson>(`/operations/${response.json.id}`);
    expect(operation.json).toMatchObject({ status: "completed", error: null });
    expect(await fixture.rolesNow()).toMatchObject({ primary: replica, replica: primary, term: term + 1 });
    await fixture.writesContinue();
    await fixture.follows(primary);
  });

  poolerCases(() => fixture);

  it("keeps its primary while a user locks all databases for reading, which ends after a minute", async () => {
    const { id } = fixture.shop.service;
    const wait = { describe: () => fixture.services.describe(id) };
    const { primary, term } = await fixture.rolesNow();
    const holder = await fixture.open();
    let hasEnded = false;
    for (const event of ["error", "end"]) holder.once(event, () => (hasEnded = true));
    await holder.query("FLUSH TABLES WITH READ LOCK");
    const written = fixture.numbers.length;
    const isNamed = async () =>
      (await fixture.services.get(id)).health.reason?.includes("app_user locks all databases") === true;
    await waitUntil("health names the user who holds the lock", isNamed, wait);
    expect(hasEnded).toBe(false);
    // The statement that waits for the lock is the only one.
    expect(fixture.numbers.length).toBeLessThanOrEqual(written + 1);
    await waitUntil("the session with the lock is ended", () => hasEnded, wait);
    await fixture.writesContinue();
    expect(await fixture.rolesNow()).toMatchObject({ primary, term });
  }, 240_000);

  it("continues when the engine of its primary is killed", async () => {
    const { primary } = await fixture.rolesNow();
    killImmediately(fixture.engineOf(primary));
    await fixture.writesContinue();
  });

  it("has every acknowledged row", async () => {
    expect(await fixture.lost()).toEqual([]);
    expect(fixture.numbers.length).toBeGreaterThan(20);
  });
});
