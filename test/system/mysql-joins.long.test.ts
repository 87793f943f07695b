import { existsSync } from "node:fs";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { pathInside } from "@holdfast/testing/machines/machine-inside.ts";
import { killImmediately, type MachineProcesses } from "@holdfast/testing/platform/platform-processes.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ReplicatedShop, startReplicatedShop } from "./mysql/replicated-shop.ts";

const longMs = 240_000;
const skip = await requireRecipes(import.meta.filename, "mysql");

// Only root sees the files of a machine, which tell that a copy of the data has begun.
describe.skipIf(skip !== undefined || !asRoot)("a MySQL of two nodes that gets a third", { timeout: longMs }, () => {
  let fixture: ReplicatedShop;

  beforeAll(async () => {
    fixture = await startReplicatedShop();
    await fixture.query("CREATE TABLE bulk (id INT AUTO_INCREMENT PRIMARY KEY, bytes BLOB)");
    await fixture.query("INSERT INTO bulk (bytes) VALUES (RANDOM_BYTES(1000))");
    for (let doubled = 0; doubled < 16; doubled += 1)
      await fixture.query("INSERT INTO bulk (bytes) SELECT RANDOM_BYTES(1000) FROM bulk");
  }, longMs);
  afterAll(() => fixture?.remove(), longMs);

  const wait = () => ({ withinMs: longMs, describe: () => fixture.services.describe(fixture.shop.service.id) });
  const machineOf = (id: string) => fixture.platform.processes().machines.find((machine) => machine.id === id);
  const checksum = async (host?: string) =>
    (await fixture.query<{ Checksum: number }>("CHECKSUM TABLE bulk", host === undefined ? {} : { host }))[0]?.Checksum;

  const victims = {
    "joining engine": (joining) => [joining?.engine],
    "joining agent": (joining) => joining?.agents ?? [],
    "primary's engine": (_, primary) => [primary?.engine],
    "primary's agent": (_, primary) => primary?.agents ?? [],
    controller: () => fixture.platform.processes().controllers,
  } satisfies Record<
    string,
    (joining: MachineProcesses | undefined, primary: MachineProcesses | undefined) => readonly (number | undefined)[]
  >;

  it.each(Object.keys(victims) as (keyof typeof victims)[])(
    "has all data there although the %s is killed while they are copied",
    async (victim) => {
      const { nodes } = await fixture.services.get(fixture.shop.service.id);
      const before = new Set(nodes.map(({ id }) => id));
      expectStatus(await fixture.platform.rest.post(fixture.path("/nodes"), { role: "replica" }), 202);
      const joining = await waitUntil(
        "the primary's data are being copied",
        () =>
          fixture.platform
            .processes()
            .machines.find(
              ({ id, agent, engine }) =>
                !before.has(id) &&
                engine !== undefined &&
                existsSync(pathInside(agent, "/data/mysql.partial/copy/mysql")),
            ),
        { ...wait(), everyMs: 5 },
      );
      const { primary } = await fixture.rolesNow();
      const pids = victims[victim](joining, machineOf(primary)).filter((pid) => pid !== undefined);
      expect(pids.map((pid) => killImmediately(pid))).toContain(true);
      await fixture.services.settled(fixture.shop.service.id, "Running", longMs);
      await fixture.follows(joining.id);
      await fixture.writesContinue();
      const host = (await fixture.services.get(fixture.shop.service.id)).nodes.find(({ id }) => id === joining.id);
      expect(await checksum(host?.hostname)).toBe(await checksum());
      expect(existsSync(pathInside(machineOf(joining.id)?.agent, "/data/mysql.partial"))).toBe(false);
      expectStatus(await fixture.platform.rest.delete(fixture.path(`/nodes/${joining.id}`)), 202);
      await fixture.services.settled(fixture.shop.service.id, "Running", longMs);
    },
  );

  it("has every acknowledged row", async () => {
    expect(await fixture.lost()).toEqual([]);
  });
});
