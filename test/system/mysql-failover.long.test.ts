import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { isFailoverCandidate } from "@holdfast/testing/platform/failover-candidate.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type ReplicatedShop, startReplicatedShop } from "./mysql/replicated-shop.ts";

const longMs = 240_000;
const skip = await requireRecipes(import.meta.filename, "mysql");

describe.skipIf(skip !== undefined)("a MySQL of two nodes in mode sync whose primary is lost", () => {
  let fixture: ReplicatedShop;

  beforeAll(async () => {
    fixture = await startReplicatedShop();
  }, longMs);
  afterAll(() => fixture?.remove(), longMs);

  it("fails over when the engine of its primary is killed and has lost its data, which are copied again", async () => {
    const { primary, replica, term } = await fixture.rolesNow();
    await fixture.follows(replica);
    await waitUntil("the primary counts on its replica", () =>
      isFailoverCandidate(fixture.platform.directory, fixture.shop.service.id, primary),
    );
    const engine = fixture.engineOf(primary);
    rmSync(`/proc/${engine}/cwd/mysql.ibd`);
    killImmediately(engine);
    await waitUntil("the replica is the primary", async () => {
      const now = await fixture.rolesNow();
      return now.primary === replica && now.term > term;
    });
    await fixture.writesContinue();
    await fixture.follows(primary);
  });

  it("has every acknowledged row", async () => {
    expect(await fixture.lost()).toEqual([]);
    expect(fixture.numbers.length).toBeGreaterThan(20);
  });
});
