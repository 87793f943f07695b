import type { Session } from "../session.ts";

/** Runs the work in one transaction; whatever it throws rolls it back. */
export async function inTransaction<T>(session: Session, work: () => Promise<T>): Promise<T> {
  await session.rows("BEGIN");
  try {
    const result = await work();
    await session.rows("COMMIT");
    return result;
  } catch (error) {
    await session.rows("ROLLBACK").catch(() => undefined);
    throw error;
  }
}
