import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import { withClientFiles } from "@holdfast/testing/engines/client-files.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { cutsUnavailable } from "@holdfast/testing/network/uid-network-cuts.ts";
import { isFailoverCandidate } from "@holdfast/testing/platform/failover-candidate.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Connection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ReplicatedShop, startReplicatedShop } from "./mysql/replicated-shop.ts";
import { prepareSysbench, rowsOfTable, startSysbench, tableNames, writeCertificates } from "./mysql/sysbench.ts";
import { cutMember } from "./replication/cut-member.ts";

const longMs = 240_000;
/** The first run builds an image with sysbench. */
const imageMs = 600_000;
/** An idle session whose engine was killed ends within this time. */
const endsWithinMs = 5_000;
const skip = await requireRecipes(import.meta.filename, "mysql");
const why = cutsUnavailable === undefined ? "" : ` (skipped: it takes ${cutsUnavailable})`;

describe.skipIf(skip !== undefined)("a MySQL of two nodes in mode sync whose primary is lost", () => {
  let fixture: ReplicatedShop;
  let clients: TestImage;

  beforeAll(async () => {
    const built = await testImage("sysbench");
    if (typeof built === "string") throw new Error(built);
    clients = built;
  }, imageMs);
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
    "fails over under sysbench when the engine of its primary is killed and has lost its data, which are copied again",
    async () => {
      expectStatus(await fixture.platform.rest.patch(fixture.path(""), { pooler: { enabled: true } }), 200);
      const { primary, replica, term } = await candidate();
      const [formerAddress, address] = [await addressOfNode(primary), await addressOfNode(replica)];
      const pooled = await waitUntil(
        "the pooler of the replica forwards to the primary",
        () => fixture.open({ port: 3307, at: address }).catch(() => undefined),
        wait(),
      );
      await withClientFiles(fixture.platform, fixture.shop, async (directory) => {
        const { host, ca_certificate: authority } = fixture.shop.connection;
        const nodeTls = join(fixture.platform.directory, "machines", replica, "state", "instance", "tls");
        writeCertificates(directory, authority, nodeTls);
        const target = { host, password: fixture.shop.password, directory };
        await prepareSysbench(clients, { ...target, port: 3306 });
        writeFileSync(join(directory, "hosts"), `${address} ${host}\n`);
        const load = startSysbench(clients, { ...target, port: 3307 });
        try {
          const described = { describe: async () => `${load.describe()}\n${await wait().describe()}` };
          await waitUntil("sysbench runs transactions", () => load.transactions() > 10, described);
          expect(load.failedRuns()).toBe(0);
          const sessions = [pooled, await fixture.open({ at: formerAddress })];
          const ended = new Set<Connection>();
          for (const session of sessions)
            for (const event of ["error", "end"]) session.once(event, () => ended.add(session));
          const engine = fixture.engineOf(primary);
          rmSync(`/proc/${engine}/cwd/mysql.ibd`);
          killImmediately(engine);
          const haveEnded = () => ended.size === sessions.length;
          await waitUntil("idle sessions with the killed engine end", haveEnded, { withinMs: endsWithinMs });
          await isPromoted(replica, term);
          await fixture.writesContinue();
          const continues = () => load.failedRuns() > 0 && load.transactions() > 10;
          await waitUntil("sysbench runs transactions at the new primary", continues, described);
          await fixture.follows(primary);
        } finally {
          await load.stop();
        }
      });
      await hasEqualTables();
    },
    longMs,
  );

  /** Asserts that both nodes have the same rows of sysbench, and as many as it created. */
  async function hasEqualTables(): Promise<void> {
    const { nodes } = await service();
    const addresses = await Promise.all(nodes.map(({ id }) => addressOfNode(id)));
    for (const table of tableNames) {
      const ofNode = async (at: string) => {
        const [counted] = await fixture.query<{ count: number }>(`SELECT COUNT(*) AS count FROM ${table}`, { at });
        const [sum] = await fixture.query<{ Checksum: number }>(`CHECKSUM TABLE ${table}`, { at });
        return { count: counted?.count, sum: sum?.Checksum };
      };
      const ofNodes = () => Promise.all(addresses.map(ofNode));
      const isSame = async () => new Set((await ofNodes()).map(({ sum }) => sum)).size === 1;
      await waitUntil(`${table} is the same on both nodes`, isSame, wait());
      expect((await ofNodes()).map(({ count }) => count)).toEqual([rowsOfTable, rowsOfTable]);
    }
  }

  it("has every acknowledged row", async () => {
    expect(await fixture.lost()).toEqual([]);
    expect(fixture.numbers.length).toBeGreaterThan(20);
  });
});
