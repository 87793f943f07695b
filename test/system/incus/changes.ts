import { AgentRolloutService } from "@holdfast/proto/holdfast/admin/v1/agent_rollout_pb.ts";
import { describe, expect, it } from "vitest";
import { writeRows } from "../../faults/acknowledged-writer.ts";
import { openPostgresql, queryOnce } from "../../support/clients.ts";
import { asOperator } from "../../support/organizations.ts";
import { killAtOnce } from "../../support/platform-processes.ts";
import type { OperationJson } from "../../support/service-json.ts";
import { expectStatus } from "../../support/services.ts";
import { waitUntil } from "../../support/wait-until.ts";
import type { IncusUnderTest } from "./incus-under-test.ts";

/** What changes under the data, which stay. */
export function changeCases(its: IncusUnderTest): void {
  describe("its data", () => {
    it("keeps its data over a stop of the service and a restart of the platform", async () => {
      const access = { password: its.main.password };
      await queryOnce(its.platform, its.main.connection, access, "CREATE TABLE kept AS SELECT 42 AS value");
      await its.services.verb(its.main.service.id, "stop");
      // Nobody has its public address now: whoever answers for the world behind this host's gateway is no PostgreSQL.
      await expect(openPostgresql(its.platform, its.main.connection, access)).rejects.toThrow(
        /ECONN|UNREACH|timeout|terminated|establishing an SSL connection/,
      );
      await its.platform.stop();
      await its.platform.start();
      await its.services.verb(its.main.service.id, "start");
      const rows = await queryOnce(its.platform, its.main.connection, access, "SELECT value FROM kept");
      expect(rows).toEqual([{ value: 42 }]);
    });

    it("gets another release of the agent while its engine runs and takes writes", async () => {
      const stop = new AbortController();
      const writer = await writeRows(its.platform, its.main, stop.signal);
      const started = async () => {
        const sql = "SELECT pg_postmaster_start_time()::text AS at";
        return queryOnce(its.platform, its.main.connection, { password: its.main.password }, sql);
      };
      const before = await started();
      const digest = its.code.put("0.3.1");
      for (const pid of its.platform.processes().controllers) killAtOnce(pid);
      await waitUntil("it has the release", () =>
        asOperator(its.platform, AgentRolloutService, async (rpcs) => {
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
      type Shown = { readonly image: string; readonly updates: readonly { readonly id: string }[] };
      const path = () => `/managed-services/${its.main.service.id}/maintenance`;
      const shown = async () => expectStatus(await its.platform.rest.get<Shown>(path()), 200).json;
      const kept = () =>
        queryOnce(its.platform, its.main.connection, { password: its.main.password }, "SELECT value FROM kept");

      /** Has the image applied, and answers how that ended. */
      async function apply(image: string): Promise<OperationJson> {
        await its.images.choose(image);
        await waitUntil("it is pending", async () => (await shown()).updates.some(({ id }) => id === image));
        const { id } = expectStatus(await its.platform.rest.post<OperationJson>(`${path()}/apply`), 202).json;
        const ended = async () => {
          const { json } = await its.platform.rest.get<OperationJson>(`/operations/${id}`);
          return json.finished_at !== null && json;
        };
        const describe = () => its.services.describe(its.main.service.id);
        const operation = await waitUntil("it is over", ended, { withinMs: 180_000, describe });
        await its.services.settled(its.main.service.id, "Running");
        return operation;
      }

      it("under its data, which it keeps", async () => {
        expect(await apply(its.images.good)).toMatchObject({ status: "completed" });
        expect(await shown()).toMatchObject({ image: its.images.good, updates: [] });
        expect(await kept()).toEqual([{ value: 42 }]);
      }, 240_000);

      it("which is taken back when its engine does not start, and keeps its data", async () => {
        expect((await apply(its.images.broken)).error).toMatchObject({ code: "taken_back_engine_failed" });
        expect((await shown()).image).toBe(its.images.good);
        expect(await kept()).toEqual([{ value: 42 }]);
      }, 240_000);
    });
  });
}
