import { createHash } from "node:crypto";
import {
  type BackupManifest,
  backupFormat,
  incrementFormat,
  sealManifest,
} from "@holdfast/common/backup/backup-manifest.ts";
import { openBackup } from "@holdfast/common/backup/backup-reader.ts";
import { createBackupWriter } from "@holdfast/common/backup/backup-writer.ts";
import { splitPages } from "@holdfast/common/backup/page-delta.ts";
import { manifestObject, partsFrom } from "@holdfast/common/backup/object-names.ts";
import type { SourceStream } from "../engines/backup-facet.ts";
import type { BackupJob, Report, ReportFields, StoredBackup } from "./job.ts";
import { JobFailed } from "./job-failed.ts";
import { type PageSpool, spoolPages } from "./page-spool.ts";
import { openPartJournal } from "./part-journal.ts";
import { type JobContext, readerOf } from "./job-context.ts";

const urlsAhead = 8;
const concurrentChecks = 4;
/** Number of checks whose URLs are requested together. */
const checksAhead = 50 * concurrentChecks;

/**
 * Reads the engine's data, encrypts and stores them, checks the stored objects, and stores the manifest last. Parts
 * with the same content that an earlier attempt stored are reused.
 */
export async function runBackup(job: BackupJob, deps: JobContext): Promise<Report> {
  const { location } = job;
  const { instance, facet, store, urls, link, now, signal } = deps;
  const { pages } = facet;
  const key = { id: job.key.id, secret: Buffer.from(job.key.secret, "base64") };
  const startedAt = now();
  let report: Report = { state: "running", backupId: location.backup, attempt: location.attempt };
  const update = (change: ReportFields) => link.report((report = { ...report, ...change }));
  update({});
  const journal = await openPartJournal(instance.paths.data, location, (object) => store.size(object, signal));

  const baseMap = job.base && (await openBaseMap(job.base, deps));
  const source = await facet.open(instance, signal, { attempt: location.attempt }).catch(async (error: unknown) => {
    await baseMap?.close();
    throw JobFailed.from("source_failed", error);
  });
  try {
    update({ sourceTotalBytes: source.totalBytes });
    const writer = createBackupWriter({
      location,
      key,
      async put(object, bytes) {
        urls.prefetch("PUT", partsFrom(object, urlsAhead), signal);
        await store.put(object, bytes, signal);
      },
      stored: journal,
      onProgress: ({ storedBytes, storedObjects }) => update({ storedBytes, storedObjects }),
    });
    const { nodeId: member } = instance.spec;
    let sourceBytes = 0;
    const onRead = (count: number) => update({ sourceBytes: (sourceBytes += count) });
    const write = async ({ name, bytes: all }: SourceStream) => {
      const bytes = read(all, onRead);
      if (pages?.stream !== name || !(job.pageMap || job.base !== undefined))
        return { stream: await writer.write({ name, member, bytes }) };
      const split = splitPages(bytes, pages.pageBytes, baseMap);
      const [stream, map] = await Promise.all([
        writer.write({ name, member, bytes: split.content }),
        writer.write({ name: mapOf(name), member, bytes: split.map }),
      ]);
      return { stream, map };
    };
    const written = await Promise.all(source.streams.map(write));
    const streams = written.map(({ stream }) => stream);
    const maps = written.flatMap(({ map }) => map ?? []);
    const end = await source.end().catch((error: unknown) => {
      throw JobFailed.from("source_failed", error);
    });
    const endedAt = now();
    const dataTime = end.dataTime.getTime();
    const manifest: BackupManifest = {
      format: job.base === undefined ? backupFormat : incrementFormat,
      ...location,
      kind: job.base === undefined ? facet.kind : "incremental",
      ...(job.base && { base: baseOf(job.base) }),
      engine: instance.spec.engine,
      version: end.version,
      startedAt: new Date(startedAt).toISOString(),
      endedAt: new Date(endedAt).toISOString(),
      dataTime: new Date(dataTime).toISOString(),
      positions: end.positions,
      streams,
      ...(maps.length > 0 && { maps }),
    };
    await checkSizes(manifest, deps);
    const sealed = await sealManifest(manifest, key);
    await store.put(manifestObject(location), sealed, signal);
    const manifestSha256 = createHash("sha256").update(sealed).digest("hex");
    const get = (object: string) => store.get(object, signal);
    // The stored objects are read back, since an accepted write does not prove that they are stored.
    const reader = await openBackup({ location, key, get, manifestSha256 });
    await reader.verify("sample");
    const parts = [...streams, ...maps].flatMap((stream) => stream.parts);
    const stored = new Map(parts.map(({ object, bytes }) => [object, bytes]));
    await journal.remove();
    return {
      ...report,
      state: "stored",
      manifestSha256,
      storedBytes: stored.values().reduce((sum, bytes) => sum + bytes, sealed.length),
      storedObjects: stored.size + 1,
      hasPageMap: maps.length > 0 ? "yes" : "no",
      fromPosition: end.positions?.from ?? "",
      consistentPosition: end.positions?.consistent ?? "",
      dataTime,
      ...(end.positions !== null && { consistentTime: end.consistentTime?.getTime() ?? endedAt }),
      engineVersion: end.version,
    };
  } finally {
    await Promise.all([source.close(), journal.close(), baseMap?.close()]);
  }
}

const mapOf = (stream: string) => `${stream}.map`;

function baseOf({ location, manifestSha256 }: StoredBackup): NonNullable<BackupManifest["base"]> {
  return { backup: location.backup, attempt: location.attempt, manifestSha256 };
}

/** Opens the page map of the base; throws BackupDamaged if it was changed. */
async function openBaseMap(base: StoredBackup, deps: JobContext): Promise<PageSpool> {
  const { pages } = deps.facet;
  const reader = await openBackup(readerOf(base, deps));
  const map = reader.manifest.maps?.find(({ name }) => name === mapOf(pages?.stream ?? ""));
  if (pages === undefined || map === undefined)
    throw new JobFailed("failed", "No increment can be taken since the base backup.");
  return spoolPages(deps.instance.paths.data, reader.read(map), pages.pageBytes);
}

async function* read(bytes: AsyncIterable<Uint8Array>, onRead: (count: number) => void): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of bytes) {
      onRead(chunk.byteLength);
      yield chunk;
    }
  } catch (error) {
    throw JobFailed.from("source_failed", error);
  }
}

/** Detects a store that lost accepted objects before the backup counts as stored. */
async function checkSizes({ streams, maps = [] }: BackupManifest, { store, urls, signal }: JobContext): Promise<void> {
  const parts = [...streams, ...maps].flatMap((stream) => stream.parts);
  for (let at = 0; at < parts.length; at += concurrentChecks) {
    if (at % checksAhead === 0) {
      const next = parts.slice(at, at + checksAhead).map(({ object }) => object);
      urls.prefetch("HEAD", next, signal);
    }
    await Promise.all(
      parts.slice(at, at + concurrentChecks).map(async ({ object, bytes }) => {
        const size = await store.size(object, signal);
        if (size !== bytes)
          throw new JobFailed("store_failed", `The object ${object} has ${size ?? "no"} bytes instead of ${bytes}.`);
      }),
    );
  }
}
