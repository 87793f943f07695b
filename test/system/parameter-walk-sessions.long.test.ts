import { escapeIdentifier, escapeLiteral } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { queuesOf, type ServiceQueues } from "@holdfast/testing/api/service-queues.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { batchesOf, type Extreme } from "./parameter-walk/extremes.ts";
import {
  createPostgresqlWalk,
  longMs,
  type PostgresqlWalk,
  startWalkPlatform,
} from "./parameter-walk/postgresql-walk.ts";
import { type Setting, sessionValues } from "./parameter-walk/session-values.ts";

const versions = ["17", "18"];
const database = "defaultdb";
/** Settings that are set at a time. */
const atOnce = 30;
/** Settings that the engine stores for a database, and that RESET does not remove. */
const lasting: readonly Extreme[] = [
  { name: "transaction_read_only", value: "on" },
  { name: "transaction_deferrable", value: "on" },
  { name: "transaction_isolation", value: "serializable" },
];
/** Settings that pg_settings does not show. */
const hidden = ["role", "session_authorization"];

const ownersOf = ({ running }: PostgresqlWalk) => [`DATABASE ${database}`, `ROLE ${running.connection.user}`];

const settingsSql = `SELECT name, vartype, min_val, max_val, enumvals, setting FROM pg_settings
  WHERE context = 'user' AND name <> ALL ($2::text[])
  UNION ALL SELECT name, 'string', NULL, NULL, NULL, '' FROM unnest($1::text[]) AS name ORDER BY name`;

describe("settings of a database and of a role, at their least and greatest values", () => {
  let platform: Platform;
  let walks: readonly PostgresqlWalk[] = [];

  beforeAll(async () => {
    platform = await startWalkPlatform();
    walks = await Promise.all(versions.map((version) => createPostgresqlWalk(platform, version, { node_count: 1 })));
  }, longMs);
  afterAll(async () => {
    for (const walk of walks) await walk.close();
    await platform?.remove();
  }, longMs);

  /** Performs all actions of the platform in sessions of the database, or for the role. */
  async function platformWorks(walk: PostgresqlWalk, queues: ServiceQueues, n: number): Promise<void> {
    const { rest } = platform;
    await walk.manages();
    const request = {
      sql: "SELECT n, 'a\\b' AS text, '2026-02-01'::date AS day FROM public.walked",
      database_name: database,
    };
    const response = await rest.post<{ rows: unknown }>(walk.path("/ai-query/execute"), request);
    expect(expectStatus(response, 200).json.rows).toEqual([[1, "a\\b", "2026-02-01"]]);
    expectStatus(await rest.get(walk.path("/metrics/query-stats?limit=10&order=calls")), 200);
    expectStatus(await rest.get(walk.path("/queries/running")), 200);
    await queues.send("walked", [n]);
    const claimed = await waitUntil("the message is claimed", async () => {
      const messages = await queues.claim("walked", { max: 10 });
      return messages.length > 0 ? messages : undefined;
    });
    expect(claimed.map(({ payload }) => payload.n)).toEqual([n]);
    expect((await queues.ack("walked", claimed)).json.lost).toEqual([]);
  }

  /** Number of these that the engine let the user set, for the database and for the role. */
  async function setAll(walk: PostgresqlWalk, some: readonly Extreme[]): Promise<number> {
    let accepted = 0;
    for (const extreme of some) {
      const value = extreme.value === "" ? "''" : extreme.value.split(", ").map(escapeLiteral).join(", ");
      const name = extreme.name.split(".").map(escapeIdentifier).join(".");
      for (const owner of ownersOf(walk))
        if ((await walk.trySql(`ALTER ${owner} SET ${name} TO ${value}`)) === undefined) accepted += 1;
    }
    return accepted;
  }

  it.concurrent.each(versions)(
    "do not affect the platform's sessions on version %s",
    async (version) => {
      const walk = walks[versions.indexOf(version)];
      if (walk === undefined) throw new Error(`no service has version ${version}`);
      const queues = queuesOf(platform, walk.id);
      await queues.create("walked");
      await walk.sql("CREATE TABLE IF NOT EXISTS walked AS SELECT 1 AS n");
      const rounds = sessionValues(
        await walk.sql<Setting>(settingsSql, [hidden, lasting.map(({ name }) => name)]),
        walk.running.connection.user,
      );
      let n = 0;
      let accepted = 0;
      for (const some of rounds.flatMap((round) => batchesOf(round, atOnce))) {
        accepted += await setAll(walk, some);
        n += 1;
        const under = some.map(({ name, value }) => `${name} = ${value}`).join(", ");
        await platformWorks(walk, queues, n).catch((error: unknown) => {
          throw new Error(`under ${under}`, { cause: error });
        });
        await walk.runs(under);
        for (const owner of ownersOf(walk)) await walk.sql(`ALTER ${owner} RESET ALL`);
      }
      // Few are rejected, by both: values that are valid only elsewhere.
      expect(accepted).toBeGreaterThan(rounds.flat().length);
      const [least = []] = rounds;
      await setAll(walk, [...least, ...lasting]);
      await walk.services.verb(walk.id, "restart");
      await platformWorks(walk, queues, n + 1);
      await walk.backedUp("the least of all");
      const read = await walk.readFrom(await walk.restored(`walked-${version}`), "SELECT n FROM walked");
      expect(read).toEqual([{ n: 1 }]);
    },
    longMs,
  );
});
