import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { openChain } from "@holdfast/common/backup/backup-reader.ts";
import type { BackupStream } from "@holdfast/common/backup/backup-manifest.ts";
import { readDelta } from "@holdfast/common/backup/page-delta.ts";
import type { RecoveryTarget } from "../engines/backup-facet.ts";
import { patchFiles } from "../os/patch-files.ts";
import { createArchiveReader } from "./archive-reader.ts";
import type { Report, ReportFields, RestoreJob } from "./job.ts";
import { readMarker, restoreMarker, writeMarker } from "./restore-marker.ts";
import { type JobContext, readerOf } from "./job-context.ts";

/** Removes the machine's data, unpacks the backup, and recovers it to the target. The marker records the progress. */
export async function runRestore(job: RestoreJob, deps: JobContext): Promise<Report> {
  const { restoreId, location } = job;
  const { instance, facet, link, signal } = deps;
  const { data } = instance.paths;
  let report: Report = { state: "fetching", restoreId };
  const update = (change: ReportFields) => link.report((report = { ...report, ...change }));
  const marker = await readMarker(data);
  if (marker?.restoreId === restoreId && marker.finished)
    return { ...report, state: "finished", findings: marker.findings ?? [], warnings: marker.warnings ?? [] };
  update({});
  const chain = await openChain([...job.earlier, job].map((stored) => readerOf(stored, deps)));
  const streams = chain.flatMap((reader) => reader.manifest.streams.map((stream) => ({ reader, stream })));
  for (const { manifest } of chain)
    if (manifest.engine !== instance.spec.engine) throw new Error(`The backup is a backup of ${manifest.engine}.`);
  const totalBytes = streams.reduce((sum, { stream }) => sum + stream.bytes, 0);
  // From here on the old data are being removed, which the marker records.
  await writeMarker(data, {
    restoreId,
    service: location.service,
    backup: location.backup,
    target: job.target,
    finished: false,
  });
  await empty(data);
  let restoredBytes = 0;
  for (const { reader, stream } of streams) {
    async function* counted() {
      for await (const chunk of reader.read(stream)) {
        restoredBytes += chunk.length;
        update({ restoredBytes, totalBytes });
        yield chunk;
      }
    }
    if (reader.manifest.base === undefined) await facet.restore.unpack(instance, stream.name, counted(), signal);
    else await patch(deps, stream, counted());
  }
  let restoredObjects = 0;
  const base = chain.at(-1)?.manifest.positions?.from;
  const log = createArchiveReader(job, base, deps, () => update({ restoredObjects: (restoredObjects += 1) }));
  const end = await facet.restore.finish(
    instance,
    {
      target: targetOf(job),
      isSameService: location.service === instance.spec.serviceId,
      log,
      scratch: join(data, "restore.scratch"),
      report: ({ step, position, reachedTime }) =>
        update({ state: step, position, ...(reachedTime && { reachedTime: reachedTime.getTime() }) }),
    },
    signal,
  );
  const { warnings = [] } = end;
  let findings: readonly string[] = [];
  if (job.examine) {
    update({ state: "examining" });
    const work = { target: targetOf(job), scratch: join(data, "restore.scratch") };
    findings = (await facet.examine(instance, work, signal)).map((finding) => JSON.stringify(finding));
  }
  await writeMarker(data, {
    restoreId,
    service: location.service,
    backup: location.backup,
    target: job.target,
    finished: true,
    findings,
    warnings,
  });
  return {
    ...report,
    state: "finished",
    position: end.position,
    ...(end.reachedTime && { reachedTime: end.reachedTime.getTime() }),
    lockedUsers: end.lockedUsers,
    findings,
    warnings,
  };
}

/** Applies an incremental stream in place to the files of the previous backup. */
async function patch({ instance, facet }: JobContext, { name }: BackupStream, bytes: AsyncIterable<Uint8Array>) {
  if (facet.pages?.stream !== name) throw new Error(`the stream ${name} has no increments`);
  await patchFiles(facet.pages.root(instance), readDelta(bytes));
}

function targetOf({ target }: RestoreJob): RecoveryTarget {
  return target.kind === "time" ? { kind: "time", time: new Date(target.timeMs) } : { kind: target.kind };
}

async function empty(data: string): Promise<void> {
  for (const name of await readdir(data)) {
    if (name === restoreMarker || name === "lost+found") continue;
    await rm(join(data, name), { recursive: true, force: true });
  }
}
