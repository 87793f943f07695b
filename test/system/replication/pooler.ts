import { readdir, readlink, stat } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { openPostgresql, queryOnce } from "@holdfast/testing/api/clients.ts";
import {
  type ConnectionJson,
  type ProblemJson,
  type ServiceJson,
  withPrimary,
} from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { pathInside } from "@holdfast/testing/machines/machine-inside.ts";
import type { ReplicationUnderTest } from "./replication-under-test.ts";

/** Cases of the pooler, for a service with at least one replica. */
export function poolerCases(fixture: ReplicationUnderTest): void {
  const update = (body: object) => fixture.platform.rest.patch<ServiceJson & ProblemJson>(fixture.path(), body);
  const connectionNow = async () =>
    expectStatus(await fixture.platform.rest.get<ConnectionJson>(fixture.path("/connection")), 200).json;
  const pooled = (): ConnectionJson => ({ ...fixture.main.connection, port: 5433 });
  const open = (login: { user?: string; password: string } = fixture.main) =>
    openPostgresql(fixture.platform, pooled(), login);
  const startedAt = async () => {
    const sql = "SELECT pg_postmaster_start_time()::text AS at";
    return (await queryOnce<{ at: string }>(fixture.platform, fixture.main.connection, fixture.main, sql))[0]?.at;
  };
  const describeIt = () => fixture.services.describe(fixture.main.service.id);
  const admitted = (login?: { user?: string; password: string }) =>
    waitUntil("the pooler accepts a client", () => open(login), { describe: describeIt });
  const refused = async (login?: { user?: string; password: string }) => {
    await waitUntil("the pooler accepts no connection", async () => {
      const client = await open(login).catch(() => undefined);
      await client?.end();
      return client === undefined;
    });
  };

  /** The pooler's process on a node, by this host's pid. */
  async function poolerPid(nodeId: string): Promise<number | undefined> {
    const { engine = 0 } = fixture.platform.processes().machines.find(({ id }) => id === nodeId) ?? {};
    const dataOf = async (pid: string | number) => {
      const found = await stat(pathInside(pid, "/data")).catch(() => undefined);
      return found && `${found.dev} ${found.ino}`;
    };
    const disk = await dataOf(engine);
    for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
      const program = await readlink(`/proc/${pid}/exe`).catch(() => "");
      if (program.endsWith("/pgbouncer") && (await dataOf(pid)) === disk) return Number(pid);
    }
    return undefined;
  }

  async function switchOver(): Promise<void> {
    const { nodes, term } = await fixture.services.get(fixture.main.service.id);
    const replica = nodes.find(({ role }) => role === "replica")?.id ?? "";
    expectStatus(await fixture.platform.rest.post(fixture.path(`/nodes/${replica}/failover`), {}), 202);
    expect(await fixture.services.settled(fixture.main.service.id, "Running")).toMatchObject({
      primary_node_id: replica,
      term: term + 1,
    });
  }

  describe("a pooler", () => {
    it("starts on a running service without a restart, and is in its connection", async () => {
      const before = await startedAt();
      expect((await connectionNow()).pooled_uri).toBeNull();
      const response = expectStatus(await update({ pooler: { enabled: true } }), 200).json;
      expect(response.pooler).toEqual({ enabled: true, mode: "transaction" });
      const { pooled_uri: uri, listeners, uri: direct } = await connectionNow();
      expect(uri).toBe(direct.replace(":5432/", ":5433/"));
      expect(listeners.filter(({ name, port }) => name === "pooler" && port === 5433)).toHaveLength(2);
      const client = await admitted();
      expect((await client.query("SELECT current_user")).rows).toEqual([
        { current_user: fixture.main.connection.user },
      ]);
      await client.end();
      expect(await startedAt()).toBe(before);
    });

    it("admits users by their current passwords alone", async () => {
      await expect(open({ password: "wrong" })).rejects.toThrow();
      const users = fixture.path("/database-users");
      expectStatus(await fixture.platform.rest.post(users, { username: "late", role: "readwrite" }), 201);
      const late = async (verb: string) => {
        const response = await fixture.platform.rest.post<{ password: string }>(`${users}/late/${verb}`);
        return { user: "late", password: expectStatus(response, 200).json.password };
      };
      const first = await late("reveal-password");
      await (await admitted(first)).end();
      const second = await late("reset-password");
      await (await admitted(second)).end();
      await expect(open(first)).rejects.toThrow();
      await expect(open({ user: "holdfast", password: "wrong" })).rejects.toThrow();
    });

    it("is started again when it is killed, and its engine is left alone", async () => {
      const { primary_node_id: primary } = withPrimary(await fixture.services.get(fixture.main.service.id));
      const before = await startedAt();
      const pid = await poolerPid(primary);
      if (pid === undefined) throw new Error("no pooler runs on the primary");
      process.kill(pid, "SIGKILL");
      await waitUntil("another one runs", async () => {
        const now = await poolerPid(primary);
        return now !== undefined && now !== pid;
      });
      await (await admitted()).end();
      expect(await startedAt()).toBe(before);
    });

    it("changes its mode while clients are connected", async () => {
      const client = await admitted();
      expect(expectStatus(await update({ pooler: { mode: "session" } }), 200).json.pooler).toEqual({
        enabled: true,
        mode: "session",
      });
      const sessions = async () => {
        const fresh = await open();
        try {
          await fresh.query("SELECT set_config('holdfast.test', 'mine', false)");
          const newClient = await open();
          const pid = async (of: typeof fresh) => (await of.query("SELECT pg_backend_pid() AS pid")).rows[0]?.pid;
          const pids = [await pid(fresh), await pid(newClient)];
          await newClient.end();
          return pids[0] !== pids[1];
        } finally {
          await fresh.end();
        }
      };
      await waitUntil("each client has a separate session", sessions);
      expect((await client.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
      await client.end();
      expectStatus(await update({ pooler: { mode: "transaction" } }), 200);
    });

    it("connects to the new primary after a switchover to a replica, and back", async () => {
      for (const name of ["pooled_there", "pooled_back"]) {
        const old = await admitted();
        const over = new Promise<void>((resolve) => old.once("end", () => resolve()));
        await switchOver();
        await over;
        await waitUntil(
          "a client that connects again writes",
          async () => {
            const client = await open();
            try {
              await client.query(`CREATE TABLE IF NOT EXISTS ${name} (id int)`);
              return true;
            } finally {
              await client.end().catch(() => undefined);
            }
          },
          { describe: describeIt },
        );
      }
    });

    it("enforces the allow-list, also on existing sessions", async () => {
      const client = await admitted();
      const over = new Promise<void>((resolve) => client.once("end", () => resolve()));
      const { allowed_cidrs: before } = await fixture.services.get(fixture.main.service.id);
      expectStatus(await update({ allowed_cidrs: ["203.0.113.0/24"] }), 200);
      await over;
      await refused();
      expectStatus(await update({ allowed_cidrs: before }), 200);
      await (await admitted()).end();
    });

    it("stops with its clients, and the engine's own sessions continue", async () => {
      const direct = await openPostgresql(fixture.platform, fixture.main.connection, fixture.main);
      const client = await admitted();
      const over = new Promise<void>((resolve) => client.once("end", () => resolve()));
      expect(expectStatus(await update({ pooler: { enabled: false } }), 200).json.pooler?.enabled).toBe(false);
      await over;
      await refused();
      expect((await direct.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
      await direct.end();
      expect((await connectionNow()).pooled_uri).toBeNull();
    });
  });
}
