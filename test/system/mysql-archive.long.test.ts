import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const longMs = 240_000;
const outageMs = 20_000;
const skip = await requireRecipes(import.meta.filename, "mysql");

describe.skipIf(skip !== undefined)("the archived log of a MySQL", () => {
  let platform: Platform;
  let services: Services;
  let shop: RunningService;
  let next = 1;

  beforeAll(async () => {
    platform = await startPlatform({
      environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "3" },
    });
    services = createServices(platform);
    shop = await services.createRunning("shop", { database_type: "mysql" });
    await query(shop, "CREATE TABLE ledger (n INT PRIMARY KEY)");
    await untilArchived(new Date());
  }, longMs);
  afterAll(() => platform?.remove(), longMs);

  async function query<Row extends object>(of: RunningService, sql: string): Promise<Row[]> {
    const { host, port, ca_certificate: ca } = of.connection;
    const stream = connect({ host: await addressOf(platform, host), port });
    const login = { host, user: "app_user", password: of.password, database: "defaultdb" };
    const client = await createConnection({ ...login, stream, ssl: { ca, verifyIdentity: true } });
    client.on("error", () => undefined);
    try {
      return (await client.query(sql))[0] as Row[];
    } finally {
      client.destroy();
    }
  }

  /** Writes numbers; repeats one until it is acknowledged, since the engine may have ended. */
  async function write(count: number): Promise<void> {
    for (const end = next + count; next < end; next += 1)
      await waitUntil("the number is acknowledged", () =>
        query(shop, `INSERT IGNORE INTO ledger VALUES (${next})`).then(
          () => true,
          () => false,
        ),
      );
  }

  const restorable = async () => (await services.get(shop.service.id)).backups?.restorable ?? null;
  const gaps = async () => (await services.get(shop.service.id)).backups?.gaps;
  const machine = () => platform.processes().machines.find(({ id }) => id === shop.service.nodes[0]?.id);
  const untilArchived = (time: Date) =>
    waitUntil("the log of the time is archived", async () => ((await restorable())?.to ?? "") > time.toISOString(), {
      withinMs: longMs,
      describe: () => services.describe(shop.service.id),
    });

  it.each(["component", "agent", "engine", "controller", "store"] as const)(
    "continues without a gap although the %s is killed",
    async (victim) => {
      await write(5);
      const { controllers, store } = platform.processes();
      const pids = {
        component: machine()?.jobs ?? [],
        agent: [machine()?.agent],
        engine: [machine()?.engine],
        controller: controllers,
        store: [store],
      };
      for (const pid of pids[victim]) killImmediately(pid ?? 0);
      await write(5);
      await untilArchived(new Date());
      expect(await gaps()).toEqual([]);
    },
    longMs,
  );

  it(
    "continues without a gap after an outage of the store, during which the window does not move",
    async () => {
      const { store = 0 } = platform.processes();
      await write(5);
      killImmediately(store, "SIGSTOP");
      const since = new Date();
      await write(5);
      // Time: the length of the outage.
      await sleep(outageMs);
      const during = (await restorable())?.to ?? "";
      await write(5);
      killImmediately(store, "SIGCONT");
      expect(Date.parse(during) - since.getTime()).toBeLessThan(outageMs / 2);
      await untilArchived(new Date());
      expect(await gaps()).toEqual([]);
    },
    longMs,
  );

  it(
    "restores every number up to its end",
    async () => {
      await write(5);
      const point = new Date(Date.now() + 1);
      await untilArchived(point);
      const body = { restore_point: point.toISOString(), target_service_name: "copy" };
      const response = await platform.rest.post<ServiceJson>(
        `/managed-services/${shop.service.id}/backups/restore`,
        body,
      );
      const { id } = expectStatus(response, 202).json;
      await services.settled(id, "Running", longMs);
      const rows = await query<{ n: number }>(await services.open(id), "SELECT n FROM ledger ORDER BY n");
      expect(rows.map(({ n }) => n)).toEqual(Array.from({ length: next - 1 }, (_, index) => index + 1));
    },
    longMs,
  );
});
