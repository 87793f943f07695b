import { readFileSync, readlinkSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import { createServices, expectStatus, type RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { print, times } from "./figures.ts";
import { costOf } from "./cost.ts";

/** Time from the POST of a replica until it streams, against pg_basebackup of the same data onto the same disk. */
export async function measureCopy(on: Platform, megabytes: number): Promise<void> {
  const services = createServices(on);
  const large = await services.createRunning("large", { storage_size_gb: 10 });
  await fill(on, large, megabytes);
  const path = `/managed-services/${large.service.id}`;
  const primary = on.processes().machines.find(({ id }) => id === large.service.primary_node_id);
  if (primary?.engine === undefined) throw new Error("the primary has no engine");
  const bare = await bareCopy(primary.engine);
  const startedAt = performance.now();
  const { json } = expectStatus(await on.rest.post<{ id: string }>(`${path}/nodes`, { role: "replica" }), 202);
  await waitUntil(
    "the replica streams",
    async () => {
      const { json: status } = await on.rest.get<{ sync_state: string }>(`${path}/nodes/${json.id}/replication-status`);
      return status.sync_state === "streaming";
    },
    { withinMs: 600_000, everyMs: 100 },
  );
  const holdfastMs = performance.now() - startedAt;
  print(
    `replica of ${megabytes} MB: Holdfast; pg_basebackup`,
    `${(holdfastMs / 1_000).toFixed(1)}; ${(bare / 1_000).toFixed(1)} s`,
  );
  print("replica against pg_basebackup", times(holdfastMs / bare), "<= 1.3x");
  await services.delete(large.service.id);
}

/** Rows of 1 KB that do not compress. */
async function fill(on: Platform, { connection, password }: RunningService, megabytes: number): Promise<void> {
  const run = (sql: string) => queryOnce(on, connection, { password }, sql);
  await run("CREATE TABLE filler (id bigint, data text); ALTER TABLE filler ALTER data SET STORAGE PLAIN");
  const batch = 10_000;
  const text = "string_agg(md5(random()::text), '')";
  for (let from = 0; from < megabytes * 1_000; from += batch)
    await run(`INSERT INTO filler SELECT i, (SELECT ${text} FROM generate_series(1, 30) WHERE i IS NOT NULL)
      FROM generate_series(${from + 1}, ${from + batch}) AS i`);
}

const program = "/usr/lib/postgresql/17/bin/pg_basebackup";

/** Milliseconds of pg_basebackup's copy of an engine's data to the same disk, inside the engine's machine. */
async function bareCopy(engine: number): Promise<number> {
  const data = readlinkSync(`/proc/${engine}/cwd`);
  const [, , , port, socketDirectory] = readFileSync(`/proc/${engine}/root${data}/postmaster.pid`, "utf8").split("\n");
  const copy = join(dirname(data), "bench-copy");
  const options = [`--pgdata=${copy}`, "--checkpoint=fast", `--host=${socketDirectory}`, `--port=${port}`];
  const enter = ["--target", String(engine), "--mount", "--pid", "--"];
  try {
    return (await costOf({ command: "nsenter", args: [...enter, program, ...options, "--username=holdfast"] })).wallMs;
  } finally {
    rmSync(`/proc/${engine}/root${copy}`, { recursive: true, force: true });
  }
}
