import { layoutOf } from "@holdfast/compute/local/machine-paths.ts";
import { dataSource } from "@holdfast/compute/incus/instance-config.ts";
import { AgentRolloutService } from "@holdfast/proto/holdfast/admin/v1/agent_rollout_pb.ts";
import { describe, expect, it } from "vitest";
import { writeRows } from "../../faults/acknowledged-writer.ts";
import { openPostgresql, queryOnce } from "@holdfast/testing/api/clients.ts";
import { startMountNamespace } from "@holdfast/testing/machines/mount-namespace.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import type { OperationJson, PageJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { IncusUnderTest } from "./incus-under-test.ts";

interface EventJson {
  readonly data: Readonly<Record<string, unknown>>;
}

const isSnapshot = (name: string) => name.includes("snapshot");

/** Changes beneath the data, which are retained. */
export function changeCases(fixture: IncusUnderTest): void {
  describe("its data", () => {
    it("retains its data over a stop of the service and a restart of the platform", async () => {
      const access = { password: fixture.main.password };
      await queryOnce(fixture.platform, fixture.main.connection, access, "CREATE TABLE kept AS SELECT 42 AS value");
      await fixture.services.verb(fixture.main.service.id, "stop");
      // No machine has the public address now: an address beyond this host's gateway that responds is not a PostgreSQL.
      await expect(openPostgresql(fixture.platform, fixture.main.connection, access)).rejects.toThrow(
        /ECONN|UNREACH|timeout|terminated|establishing an SSL connection/,
      );
      await fixture.platform.stop();
      await fixture.platform.start();
      await fixture.services.verb(fixture.main.service.id, "start");
      const rows = await queryOnce(fixture.platform, fixture.main.connection, access, "SELECT value FROM kept");
      expect(rows).toEqual([{ value: 42 }]);
    });

    it("gets another release of the agent while its engine accepts writes", async () => {
      const stop = new AbortController();
      const writer = await writeRows(fixture.platform, fixture.main, stop.signal);
      const started = async () => {
        const sql = "SELECT pg_postmaster_start_time()::text AS at";
        return queryOnce(fixture.platform, fixture.main.connection, { password: fixture.main.password }, sql);
      };
      const before = await started();
      const digest = fixture.code.put("0.3.1");
      for (const pid of fixture.platform.processes().controllers) killImmediately(pid);
      await waitUntil("it has the release", () =>
        asOperator(fixture.platform, AgentRolloutService, async (rpcs) => {
          const now = await rpcs.getAgentRollout({});
          return now.digest === digest && now.state === "Completed" && now.current === 1;
        }),
      );
      stop.abort();
      await writer.done;
      expect(await writer.missing()).toEqual([]);
      expect(await started()).toEqual(before);
    }, 180_000);

    describe("is given another image", () => {
      type MaintenanceJson = { readonly image: string; readonly updates: readonly { readonly id: string }[] };
      const path = () => `/managed-services/${fixture.main.service.id}/maintenance`;
      const maintenance = async () => expectStatus(await fixture.platform.rest.get<MaintenanceJson>(path()), 200).json;
      const readRows = () =>
        queryOnce(
          fixture.platform,
          fixture.main.connection,
          { password: fixture.main.password },
          "SELECT value FROM kept",
        );

      /** Applies the image, and returns the ended operation. */
      async function apply(image: string): Promise<OperationJson> {
        await fixture.images.choose(image);
        await waitUntil("it is pending", async () => (await maintenance()).updates.some(({ id }) => id === image));
        const { id } = expectStatus(await fixture.platform.rest.post<OperationJson>(`${path()}/apply`), 202).json;
        const ended = async () => {
          const { json } = await fixture.platform.rest.get<OperationJson>(`/operations/${id}`);
          return json.finished_at !== null && json;
        };
        const describe = () => fixture.services.describe(fixture.main.service.id);
        const operation = await waitUntil("it is over", ended, { withinMs: 180_000, describe });
        await fixture.services.settled(fixture.main.service.id, "Running");
        return operation;
      }

      it("retains its data, and reports no snapshot while a program of the host uses the data", async () => {
        const paths = layoutOf(fixture.platform.directory).machine(fixture.main.service.nodes[0]?.id ?? "");
        const program = await startMountNamespace(dataSource(paths));
        const { status, snapshot } = await apply(fixture.images.valid);
        await program.end("SIGKILL");
        expect(status).toBe("completed");
        expect(snapshot).toEqual({ state: "none", reason: "A program of the host has the data disk open." });
        expect(await maintenance()).toMatchObject({ image: fixture.images.valid, updates: [] });
        expect(await readRows()).toEqual([{ value: 42 }]);
      }, 240_000);

      it("which damages its data: image and data are rolled back, and no acknowledged row is lost", async () => {
        // Programs of the host start and end, each in a separate mount namespace.
        const views = await Promise.all([startMountNamespace(), startMountNamespace()]);
        const stop = new AbortController();
        // An earlier writer's rows have the same numbers.
        await queryOnce(
          fixture.platform,
          fixture.main.connection,
          { password: fixture.main.password },
          "DROP TABLE ledger",
        );
        const writer = await writeRows(fixture.platform, fixture.main, stop.signal);
        await waitUntil("rows are written", () => writer.acknowledged > 3);
        const { id, error, snapshot } = await apply(fixture.images.damaging);
        expect(error).toMatchObject({ code: "rolled_back_engine_failed" });
        expect(snapshot).toEqual({ state: "restored", reason: null });
        expect((await maintenance()).image).toBe(fixture.images.valid);
        // Services that are created from now on have another image.
        await fixture.images.choose(fixture.images.valid);
        const before = writer.acknowledged;
        await waitUntil("clients are admitted again", () => writer.acknowledged > before);
        stop.abort();
        await writer.done;
        expect(await writer.missing()).toEqual([]);
        expect(await readRows()).toEqual([{ value: 42 }]);
        const events = await waitUntil("its event is emitted", async () => {
          const { json } = await fixture.platform.rest.get<PageJson<"events", EventJson>>(
            `/managed-services/${fixture.main.service.id}/events?limit=200`,
          );
          return json.events.find(({ data }) => data["operation_id"] === id && "data_restored" in data);
        });
        expect(events.data).toMatchObject({ rolled_back: true, data_restored: true });
        await waitUntil("no snapshot remains", async () => !(await fixture.tier.disks()).some(isSnapshot));
        for (const view of views) await view.end("SIGKILL");
      }, 240_000);
    });
  });
}
