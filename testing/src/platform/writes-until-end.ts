import { openPostgresql, queryOnce } from "../api/clients.ts";
import type { Platform } from "./platform.ts";
import type { RunningService } from "./services.ts";

/** Numbers that several concurrent clients write, each until its session ends. */
export interface WritesUntilEnd {
  /** Numbers that the engine acknowledged. */
  readonly acknowledged: readonly number[];
  /** Resolves when the last session has ended. */
  readonly ended: Promise<unknown>;
}

const writers = 4;

export function writeUntilEnd(
  write: (next: () => number, acknowledged: (n: number) => void) => Promise<void>,
): WritesUntilEnd {
  const acknowledged: number[] = [];
  let last = 0;
  const next = () => (last += 1);
  const writing = Array.from({ length: writers }, () => write(next, (n) => void acknowledged.push(n)));
  return { acknowledged, ended: Promise.allSettled(writing) };
}

/** Rows of a new table `late` of a PostgreSQL. */
export async function writeRowsUntilEnd(
  platform: Platform,
  { connection, password }: RunningService,
): Promise<WritesUntilEnd> {
  await queryOnce(platform, connection, { password }, "CREATE TABLE late (i int)");
  return writeUntilEnd(async (next, note) => {
    const client = await openPostgresql(platform, connection, { password });
    for (let i = next(); ; i = next()) {
      await client.query("INSERT INTO late VALUES ($1)", [i]);
      note(i);
    }
  });
}
