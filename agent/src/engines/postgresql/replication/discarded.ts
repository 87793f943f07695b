import { join } from "node:path";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import type { DiscardedLog } from "../../replication-facet.ts";
import { parseLsn, formatLsn, segmentBytes, segmentStart } from "../backup/lsn.ts";
import { dataDirectory, program } from "../layout.ts";
import { keyFiles, updateKeyCopy } from "../key-copy.ts";
import { primaryConninfo } from "./members.ts";
import { shutdownPosition } from "./follow.ts";

const environment = { LC_ALL: "C", TZ: "UTC" };

/** Saves complete segments, which pg_waldump can read. Like pg_rewind, recovers an engine that was killed first. */
export async function saveDiscarded(
  deps: EngineDeps,
  instance: Instance,
  { directory, limitBytes }: { readonly directory: string; readonly limitBytes: number },
  signal: AbortSignal,
): Promise<DiscardedLog | undefined> {
  const { runAsEngine: run } = deps;
  const conninfo = primaryConninfo(instance);
  if (conninfo === undefined) throw new Error("a primary cannot be rewound");
  const data = dataDirectory(instance);
  const config = `${instance.paths.config}/postgresql.conf`;
  await updateKeyCopy(deps, keyFiles(instance), signal);
  if ((await shutdownPosition(deps, instance, signal)) === undefined) {
    const recovery = ["--single", "-F", "-D", data, "-c", `config_file=${config}`, "template1"];
    await run([program(instance, "postgres"), ...recovery], { env: environment, input: "", signal });
  }
  const options = [`--target-pgdata=${data}`, `--source-server=${conninfo}`, `--config-file=${config}`, "--dry-run"];
  const output = await run([program(instance, "pg_rewind"), ...options], { env: environment, signal });
  const end = await shutdownPosition(deps, instance, signal);
  const range = rangeOf(output, end?.position);
  if (range === undefined) return undefined;
  const { from, to } = range;
  const names = (await run(["ls", join(data, "pg_wal")], { signal })).split("\n");
  const needed = names.filter((name) => {
    const start = segmentStart(name)?.position;
    return start !== undefined && start + segmentBytes > from && start <= to;
  });
  const saved = needed.toSorted(byPosition).slice(0, Math.floor(limitBytes / Number(segmentBytes)));
  await run(["rm", "-rf", directory], { signal });
  await run(["mkdir", "-p", directory], { signal });
  for (const name of saved) await run(["cp", "--reflink=auto", join(data, "pg_wal", name), directory], { signal });
  return { from: formatLsn(from), to: formatLsn(to), bytes: Number(to - from), savedBytes: savedBytesOf(saved, range) };
}

/**
 * The range from the position that pg_rewind would rewind to, to the end of the log; undefined if no rewind is
 * needed.
 */
export function rangeOf(output: string, end: string | undefined): { from: bigint; to: bigint } | undefined {
  const from = /servers diverged at WAL location (\S+) on timeline/.exec(output)?.[1];
  if (from === undefined || end === undefined || /no rewind required/.test(output)) return undefined;
  const [first, last] = [parseLsn(from), parseLsn(end)];
  return last > first ? { from: first, to: last } : undefined;
}

const startOf = (name: string): bigint => segmentStart(name)?.position ?? 0n;

function byPosition(a: string, b: string): number {
  return Number(startOf(a) - startOf(b));
}

function savedBytesOf(
  segments: readonly string[],
  { from, to }: { readonly from: bigint; readonly to: bigint },
): number {
  const last = segments.at(-1);
  if (last === undefined) return 0;
  const end = startOf(last) + segmentBytes;
  return Number((end < to ? end : to) - from);
}
