import { closeSync, openSync, readFileSync, readlinkSync, writeFileSync, writeSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import type { ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { pathInside } from "@holdfast/testing/machines/machine-inside.ts";

const longMs = 240_000;
const dayMs = 86_400_000;

/**
 * There are no backups here: restored data come from the disk. Most of the time is waiting, so the tests run
 * concurrently.
 */
describe.concurrent("disks of deleted services", () => {
  let platform: Platform;
  let services: Services;

  beforeAll(async () => {
    platform = await startPlatform({
      environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "86400", HOLDFAST_FINAL_BACKUP_WITHIN_S: "20" },
    });
    services = createServices(platform);
  }, longMs);
  afterAll(() => platform?.remove(), longMs);

  const query = <Row extends object>({ connection, password }: RunningService, sql: string) =>
    queryOnce<Row>(platform, connection, { password }, sql);
  const machines = () => platform.processes().machines;
  const machineOf = ({ service }: RunningService) => machines().find(({ id }) => id === service.nodes[0]?.id);
  /** The engine's data directory, as the machine sees it. */
  const dataOf = (of: RunningService) => readlinkSync(`/proc/${machineOf(of)?.engine}/cwd`);
  /** Path of a file of the machine, whether its engine runs or not. */
  const inMachine = (of: RunningService, path: string) => pathInside(machineOf(of)?.agent, path);

  /** A service with one row, and an existing archive. */
  async function create(name: string): Promise<RunningService> {
    const created = await services.createRunning(name, { allowed_cidrs: ["127.0.0.0/8"] });
    await query(created, "CREATE TABLE kept AS SELECT 1 AS i");
    const next = async () => (await services.get(created.service.id)).backups?.next_at ?? null;
    await waitUntil("its archive exists", async () => (await next()) !== null, { withinMs: longMs });
    return created;
  }

  async function remove({ service: { id } }: RunningService): Promise<void> {
    const before = Date.now();
    expectStatus(await platform.rest.delete(`/managed-services/${id}`), 202);
    await services.deleted(id, longMs);
    const list = await platform.rest.get<{ services: { id: string; undelete_until: string }[] }>(
      "/managed-services?deleted=true",
    );
    const retained = expectStatus(list, 200).json.services.filter((each) => each.id === id);
    expect(retained).toHaveLength(1);
    expect(Date.parse(retained[0]?.undelete_until ?? "")).toBeGreaterThanOrEqual(before + 7 * dayMs);
  }

  async function undelete({ service: { id } }: RunningService, name: string): Promise<void> {
    const response = await platform.rest.post<ServiceJson>(`/managed-services/${id}/undelete`, { name });
    expectStatus(response, 202);
  }

  /** Expects the undeleted service to run on its old machine with its data; then deletes it for good. */
  async function expectUndeleted(created: RunningService, name: string): Promise<void> {
    const { id } = created.service;
    await services.settled(id, "Running", longMs);
    const reopened = await services.open(id);
    expect(reopened.service).toMatchObject({ id, name, hostname: created.service.hostname });
    const nodes = [created.service.nodes[0]?.id];
    expect(reopened.service.nodes.map((node) => node.id)).toEqual(nodes);
    expect(reopened.password).toBe(created.password);
    expect(await query(reopened, "SELECT i FROM kept")).toEqual([{ i: 1 }]);
    const isThere = () => machines().some((machine) => machine.id === nodes[0]);
    expect(isThere()).toBe(true);

    expectStatus(await platform.rest.delete(`/managed-services/${id}?skip_final_backup=true`), 202);
    await services.deleted(id, longMs);
    await waitUntil("its machine is removed", () => !isThere(), { withinMs: longMs });
    const undeleted = async () => (await platform.rest.post(`/managed-services/${id}/undelete`)).status;
    // Until its record is removed, it is listed as a service without retained data.
    await waitUntil("the deleted service is not listed any more", async () => (await undeleted()) === 404, {
      withinMs: longMs,
    });
  }

  it(
    "a stopped service returns with rows, hostname and password, and is deleted for good on request",
    async () => {
      const created = await create("kept");
      await services.verb(created.service.id, "stop");
      await remove(created);
      await undelete(created, "again");
      await expectUndeleted(created, "again");
    },
    3 * longMs,
  );

  it(
    "a service in Error reports why, returns in Error, and runs once its data are repaired",
    async () => {
      const created = await create("failed");
      const { id } = created.service;
      const inError = () =>
        waitUntil(
          "the service is in Error",
          async () => {
            const { status, operation } = await services.get(id);
            return status === "Error" && operation === null;
          },
          { withinMs: longMs, describe: () => services.describe(id) },
        );
      const control = `${dataOf(created)}/global/pg_control`;
      const original = readFileSync(inMachine(created, control));
      writeFileSync(inMachine(created, control), "not a control file");
      killImmediately(machineOf(created)?.engine ?? 0);
      await inError();
      const { error, operation } = await services.get(id);
      expect(error?.message).not.toBe("");
      expect(operation).toBeNull();
      const restart = await platform.rest.post<ProblemJson>(`/managed-services/${id}/restart`);
      expect(expectStatus(restart, 409).json.code).toBe("wrong_state");
      await remove(created);
      await undelete(created, "failed");
      await inError();
      writeFileSync(inMachine(created, control), original);
      expectStatus(await platform.rest.post(`/managed-services/${id}/start`), 202);
      const isStarting = async () => (await services.get(id)).status !== "Error";
      await waitUntil("it starts", isStarting, { withinMs: longMs, describe: () => services.describe(id) });
      await expectUndeleted(created, "failed");
    },
    3 * longMs,
  );

  it(
    "a service whose final backup fails returns on its disk",
    async () => {
      const created = await create("damaged");
      const { id } = created.service;
      await query(created, "CREATE TABLE damaged AS SELECT 1 AS i");
      const [row] = await query<{ path: string }>(created, "SELECT pg_relation_filepath('damaged') AS path");
      // A page that has not changed since a checkpoint is read from the disk, with its checksum.
      await services.verb(id, "restart");
      const page = openSync(inMachine(created, `${dataOf(created)}/${row?.path}`), "r+");
      writeSync(page, "damaged", 4_096);
      closeSync(page);
      await remove(created);
      const { backups } = expectStatus(
        await platform.rest.get<{ backups: object[] }>(`/managed-services/${id}/backups`),
        200,
      ).json;
      expect(backups).toMatchObject([{ trigger: "final", status: "failed" }]);
      await undelete(created, "damaged");
      await expectUndeleted(created, "damaged");
    },
    3 * longMs,
  );

  it("leave no machine when they are deleted for good", { concurrent: false }, async () => {
    await waitUntil("all machines are removed", () => machines().length === 0, { withinMs: longMs });
  });
});
