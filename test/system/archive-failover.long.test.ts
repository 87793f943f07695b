import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { dueSoonAfter } from "@holdfast/testing/platform/daily-backups.ts";
import { expectStatus, type RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createFailures } from "./replication/failures.ts";
import { createReplicationUnderTest } from "./replication/replication-under-test.ts";

interface Events {
  readonly events: readonly {
    readonly data: Readonly<Record<"discarded_bytes" | "kept_bytes", number>> & { node_id: string };
  }[];
}

interface BackupJson {
  readonly id: string;
  readonly created_at: string;
  readonly kind: string;
  readonly trigger: string;
  readonly base_backup_id: string | null;
}

const longMs = 300_000;
const restoringMs = 480_000;
const secondMs = 1_000;

describe("the archive of a PostgreSQL whose primary fails", () => {
  const fixture = createReplicationUnderTest();
  const { roles, untilReplicaCounts: untilCandidate, pauseMachine } = createFailures(fixture, () => undefined, []);
  /** Points in time to restore to, each with its reason. */
  const targets: { readonly why: string; readonly at: number; readonly inWindow?: true }[] = [];
  const wait = { withinMs: longMs, everyMs: 200, describe: () => fixture.services.describe(fixture.main.service.id) };

  beforeAll(async () => {
    await fixture.start({ HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "3" });
    await fixture.addReplica();
  }, longMs);
  afterAll(() => fixture.remove(), longMs);

  const backups = async () => (await fixture.services.get(fixture.main.service.id)).backups;

  /** Completed automated backups, newest first. */
  async function automated(): Promise<readonly BackupJson[]> {
    const path = fixture.path("/backups?type=automated&status=completed");
    return expectStatus(await fixture.platform.rest.get<{ backups: BackupJson[] }>(path), 200).json.backups;
  }

  async function untilDurable(at: number): Promise<void> {
    const target = new Date(at).toISOString();
    await waitUntil(
      "the log until then is stored",
      async () => ((await backups())?.restorable?.to ?? "") > target,
      wait,
    );
  }

  /**
   * `beforeFailure` runs while the replica receives nothing, right before its primary fails. Returns the id of the
   * failed primary.
   */
  async function failsOver(name: string, beforeFailure?: (primary: string) => Promise<void>): Promise<string> {
    await untilCandidate();
    // The replica lacks rows from before its creation that are not archived.
    await untilDurable(Date.now());
    const { primary, replica } = await roles();
    const wake = beforeFailure && pauseMachine(replica);
    await beforeFailure?.(primary);
    const repair = pauseMachine(primary);
    wake?.();
    const last = fixture.writer.rows.at(-1)?.acknowledgedAt ?? 0;
    await waitUntil("the replica is the primary", async () => (await roles()).primary === replica, wait);
    const { acknowledged } = fixture.writer;
    await waitUntil("writes continue", () => fixture.writer.acknowledged > acknowledged + 20, wait);
    repair();
    const first = fixture.writer.rows.find(({ startedAt }) => startedAt > last)?.acknowledgedAt ?? 0;
    expect(first).toBeGreaterThan(last);
    targets.push(
      { why: `a second before ${name}`, at: last - secondMs },
      { why: `in ${name}`, at: (last + first) / 2 },
    );
    targets.push({ why: `a second after ${name}`, at: first + secondMs });
    await waitUntil(
      "the old primary follows",
      async () => (await fixture.statusOf(primary)).sync_state === "streaming",
      wait,
    );
    await untilDurable(first + 2 * secondMs);
    return primary;
  }

  async function rowsOf({ connection, password }: RunningService): Promise<Set<number>> {
    const client = await openPostgresql(fixture.platform, connection, { password });
    try {
      const { rows } = await client.query<{ id: string }>("SELECT id FROM ledger");
      return new Set(rows.map(({ id }) => Number(id)));
    } finally {
      await client.end();
    }
  }

  it("has no gap after a failover, nor after another one back to the first primary", {
    timeout: longMs * 2,
  }, async () => {
    await failsOver("the first failover");
    const old = await failsOver("the second one", async (primary) => {
      await fixture.queryNode(
        primary,
        "CREATE TABLE only_there AS SELECT repeat(md5(i::text), 8) FROM generate_series(1, 120000) AS i",
      );
      // Rows that no other node has are stored, and inside of the window.
      const at = Date.now();
      await untilDurable(at);
      targets.push({ why: "in the log that only the old primary had", at, inWindow: true });
    });
    expect((await backups())?.gaps).toEqual([]);
    const rewound = await waitUntil("the discarded log is reported", async () => {
      const { json } = await fixture.platform.rest.get<Events>(fixture.path("/events?type=node.rewound"));
      return json.events.find(({ data }) => data.node_id === old && data.discarded_bytes > 1 << 20);
    });
    expect(rewound.data.kept_bytes).toBe(rewound.data.discarded_bytes);
    // The next daily backup is taken during the other restores.
    const [newest] = await automated();
    if (newest === undefined) throw new Error("there is no automated backup");
    expectStatus(await fixture.platform.rest.patch(fixture.path("/backup-settings"), dueSoonAfter(newest)), 200);
  });

  it("restores the rows of points in time before, between and after both failovers", {
    timeout: restoringMs,
  }, async () => {
    await fixture.stopWriting();
    const sourceRows = await rowsOf(fixture.main);
    const waiting = targets.map((target, index) => ({ ...target, name: `then-${index}` }));
    expect(waiting).toHaveLength(7);
    const restoreAll = async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const { why, at, inWindow = false, name: target_service_name } = next;
        const body = { restore_point: new Date(at).toISOString(), target_service_name };
        const response = await fixture.platform.rest.post<ServiceJson>(fixture.path("/backups/restore"), body);
        const copy = expectStatus(response, 202).json;
        await fixture.services.settled(copy.id, "Running", longMs);
        const rows = await rowsOf(await fixture.services.open(copy.id));
        // Rows that the new primary never had are restored at moments of the window before it. Within the millisecond
        // itself the order is unknown.
        const missing = fixture.writer.rows.filter(
          (row) => row.acknowledgedAt < at && (inWindow || sourceRows.has(row.id)) && !rows.has(row.id),
        );
        const tooNew = fixture.writer.rows.filter((row) => row.startedAt > at && rows.has(row.id));
        expect({ why, at, missing, early: tooNew }).toEqual({ why, at, missing: [], early: [] });
        await fixture.platform.rest.delete(`/managed-services/${copy.id}?skip_final_backup=true`);
      }
    };
    await Promise.all([restoreAll(), restoreAll()]);
  });

  it("has an increment as the new primary's daily backup, and restores all rows from it", {
    timeout: longMs * 2,
  }, async () => {
    const completed = await waitUntil(
      "the daily backup is completed",
      async () => {
        const found = await automated();
        return found.length > 1 && found;
      },
      wait,
    );
    const [daily, first, ...others] = completed;
    expect([daily, first, others]).toMatchObject([
      { kind: "incremental", trigger: "schedule", base_backup_id: first?.id },
      { kind: "full", trigger: "first" },
      [],
    ]);
    const body = { target_service_name: "increment" };
    const response = await fixture.platform.rest.post<ServiceJson>(fixture.path(`/backups/${daily?.id}/restore`), body);
    const copy = expectStatus(response, 202).json;
    await fixture.services.settled(copy.id, "Running", longMs);
    expect(await rowsOf(await fixture.services.open(copy.id))).toEqual(await rowsOf(fixture.main));
  });
});
