import { startTestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { connectTds, type TdsClient } from "@holdfast/testing/servers/tds-client.ts";
import { outcomesOfBatch } from "@holdfast/testing/servers/tds-outcomes.ts";
import { startTestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import { silentLog } from "@holdfast/common/log.ts";
import pg from "pg";
import { difference } from "./compare.ts";
import type { InputBatch, InputGroup } from "./input.ts";

const batchLimitMs = 20_000;

export interface BatchResult {
  readonly group: string;
  readonly file: string;
  readonly area: string;
  readonly sql: string;
  /** Absent if the outcomes are the expected ones. */
  readonly difference?: string;
}

/** Runs each group in a new database `defaultdb`, which stands for `master`, and each file in a session. */
export async function runInputs(
  groups: readonly InputGroup[],
  layoutMode: "single-db" | "multi-db",
  report: (result: BatchResult) => void,
): Promise<void> {
  const postgresql = await startTestPostgresql();
  const tds = await startTestTds(postgresql.url, silentLog, layoutMode);
  const administrator = new pg.Client(postgresql.url);
  await administrator.connect();
  try {
    await tds.superuser.end();
    await administrator.query("CREATE DATABASE inputs TEMPLATE defaultdb");
    for (const { name: group, files } of groups) {
      await administrator.query("DROP DATABASE IF EXISTS defaultdb WITH (FORCE)");
      await administrator.query("CREATE DATABASE defaultdb TEMPLATE inputs");
      await administrator.query(`GRANT CREATE ON DATABASE defaultdb TO ${tds.user}`);
      for (const { name: file, area, batches } of files) {
        let client: TdsClient | undefined;
        for (const batch of batches.map(ofDefaultDatabase)) {
          const result = { group, file, area, sql: batch.sql };
          try {
            client ??= await connectTds(tds);
            const found = difference(batch, await outcomesOfBatch(client, batch.sql, batchLimitMs));
            report(found === undefined ? result : { ...result, difference: found });
          } catch (error) {
            report({ ...result, difference: `lost: ${String(error)}` });
            client?.connection.close();
            client = undefined;
          }
        }
        await client?.close();
      }
    }
  } finally {
    await administrator.end();
    await tds.stop().catch(() => {});
    await postgresql.stop();
  }
}

function ofDefaultDatabase({ sql, expected }: InputBatch): InputBatch {
  const rename = (text: string) => text.replaceAll(/\bmaster\b/gi, "defaultdb");
  return {
    sql: rename(sql),
    expected: expected.map((outcome) =>
      outcome.kind === "rows" ? { ...outcome, rows: outcome.rows.map((row) => row.map(rename)) } : outcome,
    ),
  };
}
