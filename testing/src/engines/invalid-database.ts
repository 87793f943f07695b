/** A session of a user, or of the platform. */
export interface StatementRunner {
  query(statement: string): Promise<{ readonly rows: readonly object[] }>;
}

/**
 * Leaves a half-dropped database behind: DROP DATABASE marks the database invalid, then runs a checkpoint, and the
 * session's timeout ends it there. `fill` writes to each new database.
 */
export async function leaveInvalid(
  session: StatementRunner,
  name: string,
  fill: () => Promise<unknown> = async () => undefined,
): Promise<void> {
  let timeoutMs = 4;
  for (let tries = 0; tries < 50; tries += 1) {
    const { rows } = await session.query(`SELECT datconnlimit AS "limit" FROM pg_database WHERE datname = '${name}'`);
    const [found] = rows as readonly { readonly limit: number }[];
    if (found?.limit === -2) return;
    // The drop ended before the timeout, or the timeout came before the mark.
    if (found === undefined) {
      if (tries > 0) timeoutMs = Math.max(1, Math.floor(timeoutMs / 2));
      await session.query(`CREATE DATABASE ${name}`);
      await fill();
    } else timeoutMs += 3;
    await session.query(`SET statement_timeout = ${timeoutMs}`);
    await session.query(`DROP DATABASE ${name}`).catch(() => undefined);
    await session.query("SET statement_timeout = 0").catch(() => session.query("SET statement_timeout = 0"));
  }
  throw new Error(`no DROP DATABASE ${name} ended halfway`);
}
