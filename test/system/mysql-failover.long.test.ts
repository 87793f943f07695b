import { rmSync } from "node:fs";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { cutsUnavailable } from "@holdfast/testing/network/uid-network-cuts.ts";
import { isFailoverCandidate } from "@holdfast/testing/platform/failover-candidate.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ReplicatedShop, startReplicatedShop } from "./mysql/replicated-shop.ts";
import { cutMember } from "./replication/cut-member.ts";

const longMs = 240_000;
const skip = await requireRecipes(import.meta.filename, "mysql");
const why = cutsUnavailable === undefined ? "" : ` (skipped: it takes ${cutsUnavailable})`;

describe.skipIf(skip !== undefined)("a MySQL of two nodes in mode sync whose primary is lost", () => {
  let fixture: ReplicatedShop;

  beforeAll(async () => {
    fixture = await startReplicatedShop();
  }, longMs);
  afterAll(() => fixture?.remove(), longMs);

  const service = () => fixture.services.get(fixture.shop.service.id);
  const wait = () => ({ describe: () => fixture.services.describe(fixture.shop.service.id) });
  const addressOfNode = async (nodeId: string) => {
    const { nodes } = await service();
    return addressOf(fixture.platform, nodes.find(({ id }) => id === nodeId)?.hostname ?? "");
  };

  async function candidate() {
    const { primary, replica, term } = await fixture.rolesNow();
    await fixture.follows(replica);
    const isCandidate = () => isFailoverCandidate(fixture.platform.directory, fixture.shop.service.id, primary);
    await waitUntil("the primary counts on its replica", isCandidate, wait());
    return { primary, replica, term };
  }

  const isPromoted = (replica: string, term: number) =>
    waitUntil(
      "the replica is the primary",
      async () => {
        const now = await fixture.rolesNow();
        return now.primary === replica && now.term > term;
      },
      wait(),
    );

  it.skipIf(cutsUnavailable !== undefined)(
    `fails over when the network of its primary is cut, and clients that still reach the primary get no response${why}`,
    async () => {
      const { primary, replica, term } = await candidate();
      const direct = fixture.writeAt(await addressOfNode(primary));
      await waitUntil("the primary itself takes writes", () => direct.length > 5);
      const heal = await cutMember(fixture.platform, await service(), primary);
      try {
        await isPromoted(replica, term);
        const acknowledged = direct.length;
        await fixture.writesContinue();
        expect(direct.length).toBe(acknowledged);
      } finally {
        await heal();
      }
      await fixture.follows(primary);
      await fixture.services.settled(fixture.shop.service.id, "Running");
    },
    longMs,
  );

  it(
    "fails over when the engine of its primary is killed and has lost its data, which are copied again",
    async () => {
      const { primary, replica, term } = await candidate();
      const engine = fixture.engineOf(primary);
      rmSync(`/proc/${engine}/cwd/mysql.ibd`);
      killImmediately(engine);
      await isPromoted(replica, term);
      await fixture.writesContinue();
      await fixture.follows(primary);
    },
    longMs,
  );

  it("has every acknowledged row", async () => {
    expect(await fixture.lost()).toEqual([]);
    expect(fixture.numbers.length).toBeGreaterThan(20);
  });
});
