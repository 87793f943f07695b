import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasEngine } from "../../../../../test/support/engines/engine-machine.ts";
import { createQueueDatabase, type QueueDatabase } from "../../../../../test/support/engines/queue-database.ts";
import type { Session } from "../session.ts";
import { createQueueSessions } from "./queue-sessions.ts";

describe.skipIf(!hasEngine("postgresql", "17"))("sessions that work on queues", () => {
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
  /** Of the engine's sessions of the platform in the database, besides the one that counts. */
  const open = async () => {
    const [row] = await database.asPlatform((session) =>
      session.rows<{ n: number }>(
        `SELECT count(*)::integer AS n FROM pg_stat_activity
         WHERE datname = 'defaultdb' AND application_name = 'holdfast' AND pid <> pg_backend_pid()`,
      ),
    );
    return row?.n;
  };

  it("are two at a time, however much there is to do, and have the rights of queues alone", async () => {
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

  it("close by themselves when there is nothing to do", async () => {
    await use(pid);
    await expect.poll(open).toBe(0);
  });

  it("are let go before the engine stops, those at work too, and open again afterwards", async () => {
    const before = await use(pid);
    // What ends by the wire has no answer of the engine.
    const long = use((session) => session.rows("SELECT pg_sleep(60)")).catch((error: unknown) => error);
    await expect.poll(open).toBeGreaterThan(0);
    sessions.letGo();
    expect(await long).toBeInstanceOf(Error);
    await expect.poll(open).toBe(0);
    expect(await use(pid)).not.toBe(before);
    sessions.letGo();
  });
});
