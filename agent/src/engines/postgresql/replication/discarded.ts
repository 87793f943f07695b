import { join } from "node:path";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import type { DiscardedLog } from "../../replication-facet.ts";
import { parsePosition, positionText, segmentBytes, segmentStart } from "../backup/position.ts";
import { dataDirectory, program } from "../layout.ts";
import { keyFiles, takeKey } from "../own-key.ts";
import { primaryConninfo } from "./members.ts";
import { stoppedAt } from "./rewind.ts";

const environment = { LC_ALL: "C", TZ: "UTC" };

/** By whole segments, which pg_waldump reads. An engine that was killed is recovered first, as pg_rewind would. */
export async function keepDiscarded(
  deps: EngineDeps,
  instance: Instance,
  { directory, limitBytes }: { readonly directory: string; readonly limitBytes: number },
  signal: AbortSignal,
): Promise<DiscardedLog | undefined> {
  const { runAsEngine: run } = deps;
  const conninfo = primaryConninfo(instance);
  if (conninfo === undefined) throw new Error("a primary follows nobody");
  const data = dataDirectory(instance);
  const config = `${instance.paths.config}/postgresql.conf`;
  await takeKey(deps, keyFiles(instance), signal);
  if ((await stoppedAt(deps, instance, signal)) === undefined) {
    const recovery = ["--single", "-F", "-D", data, "-c", `config_file=${config}`, "template1"];
    await run([program(instance, "postgres"), ...recovery], { env: environment, input: "", signal });
  }
  const look = [`--target-pgdata=${data}`, `--source-server=${conninfo}`, `--config-file=${config}`, "--dry-run"];
  const words = await run([program(instance, "pg_rewind"), ...look], { env: environment, signal });
  const end = await stoppedAt(deps, instance, signal);
  const range = rangeOf(words, end?.position);
  if (range === undefined) return undefined;
  const { from, to } = range;
  const inLog = (await run(["ls", join(data, "pg_wal")], { signal })).split("\n");
  const needed = inLog.filter((name) => {
    const start = segmentStart(name)?.position;
    return start !== undefined && start + segmentBytes > from && start <= to;
  });
  const kept = needed.toSorted(byPosition).slice(0, Math.floor(limitBytes / Number(segmentBytes)));
  await run(["rm", "-rf", directory], { signal });
  await run(["mkdir", "-p", directory], { signal });
  for (const name of kept) await run(["cp", "--reflink=auto", join(data, "pg_wal", name), directory], { signal });
  return { from: positionText(from), to: positionText(to), bytes: Number(to - from), keptBytes: keptOf(kept, range) };
}

/** Pure: from what pg_rewind would rewind to, and where the log ends; undefined when it would not. */
export function rangeOf(words: string, end: string | undefined): { from: bigint; to: bigint } | undefined {
  const from = /servers diverged at WAL location (\S+) on timeline/.exec(words)?.[1];
  if (from === undefined || end === undefined || /no rewind required/.test(words)) return undefined;
  const [first, last] = [parsePosition(from), parsePosition(end)];
  return last > first ? { from: first, to: last } : undefined;
}

const startOf = (name: string): bigint => segmentStart(name)?.position ?? 0n;

function byPosition(a: string, b: string): number {
  return Number(startOf(a) - startOf(b));
}

function keptOf(segments: readonly string[], { from, to }: { readonly from: bigint; readonly to: bigint }): number {
  const last = segments.at(-1);
  if (last === undefined) return 0;
  const end = startOf(last) + segmentBytes;
  return Number((end < to ? end : to) - from);
}
