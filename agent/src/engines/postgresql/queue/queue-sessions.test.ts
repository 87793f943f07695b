import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createQueueDatabase, type QueueDatabase } from "@holdfast/testing/engines/queue-database.ts";
import type { Session } from "../session.ts";
import { createQueueSessions } from "./queue-sessions.ts";

describe.skipIf(!hasEngine("postgresql", "17"))("sessions of queues", () => {
  let database: QueueDatabase;
  beforeAll(async () => {
    database = await createQueueDatabase();
  });
  afterAll(() => database?.remove());

  const sessions = createQueueSessions();
  const use = <T>(work: (session: Session) => Promise<T>) =>
    sessions.use(database.machine.instance, "defaultdb", AbortSignal.timeout(120_000), work);
  const pid = (session: Session) =>
    session.rows<{ pid: number }>("SELECT pg_backend_pid() AS pid").then(([row]) => row?.pid);
  /** The platform's sessions in the database, except the counting one. */
  const open = async () => {
    const [row] = await database.asPlatform((session) =>
      session.rows<{ n: number }>(
        `SELECT count(*)::integer AS n FROM pg_stat_activity
         WHERE datname = 'defaultdb' AND application_name = 'holdfast' AND pid <> pg_backend_pid()`,
      ),
    );
    return row?.n;
  };

  it("are at most two, with the privileges of queues only", async () => {
    const seen = await Promise.all(
      Array.from({ length: 12 }, () =>
        use(async (session) => {
          await expect(session.rows("SELECT rolpassword FROM pg_authid")).rejects.toThrow("permission denied");
          return pid(session);
        }),
      ),
    );
    expect(new Set(seen).size).toBeLessThanOrEqual(2);
  });

  it("close by themselves when idle", async () => {
    await use(pid);
    await expect.poll(open).toBe(0);
  });

  it("are closed before the engine stops, busy ones too, and can be opened afterwards", async () => {
    const before = await use(pid);
    // A broken connection has no reply of the engine.
    const holder = await database.connect();
    await holder.query("SELECT pg_advisory_lock(1)");
    const long = use((session) => session.rows("SELECT pg_advisory_lock(1)")).catch((error: unknown) => error);
    await expect.poll(open).toBeGreaterThan(0);
    sessions.closeAll();
    expect(await long).toBeInstanceOf(Error);
    await holder.end();
    await expect.poll(open).toBe(0);
    expect(await use(pid)).not.toBe(before);
    sessions.closeAll();
  });
});
