import { open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { BackupPart } from "@holdfast/common/backup/backup-manifest.ts";
import type { StoredParts } from "@holdfast/common/backup/backup-writer.ts";
import { type BackupLocation, isPartOf } from "@holdfast/common/backup/object-names.ts";

/**
 * Journal of the parts of a backup that this machine stored, across all attempts, in a file beside the data. Without it
 * a repeated attempt stores all parts again.
 */
export interface PartJournal extends StoredParts {
  /** Removes the journal of a complete backup. */
  remove(): Promise<void>;
  close(): Promise<void>;
}

interface Entry extends BackupPart {
  readonly stream: string;
  readonly digest: string;
}

const name = "backup.parts";
/** Limits the file's size; parts beyond it are stored again by a later attempt. */
const maxEntries = 250_000;

/** `sizeOf` returns an object's size in the store; a part with another size is stored again. */
export async function openPartJournal(
  data: string,
  location: BackupLocation,
  sizeOf: (object: string) => Promise<number | undefined>,
): Promise<PartJournal> {
  const path = join(data, name);
  const stored = new Map<string, BackupPart>();
  const keyOf = (stream: string, digest: string) => `${stream} ${digest}`;
  for (const { stream, digest, ...part } of await readEntries(path, location)) stored.set(keyOf(stream, digest), part);
  const inherited = new Set(stored.values().map(({ object }) => object));
  // Truncates the journal of another backup.
  const file = await open(path, stored.size === 0 ? "w" : "a", 0o640);

  return {
    async find(stream, digest) {
      const part = stored.get(keyOf(stream, digest));
      if (part === undefined || !inherited.has(part.object)) return part;
      return (await sizeOf(part.object)) === part.bytes ? part : undefined;
    },
    async add(stream, digest, part) {
      if (stored.size >= maxEntries) return;
      stored.set(keyOf(stream, digest), part);
      // On a full disk the backup continues; a later attempt repeats more work.
      await file.appendFile(`${JSON.stringify({ stream, digest, ...part } satisfies Entry)}\n`).catch(() => undefined);
    },
    remove: () => rm(path, { force: true }),
    close: () => file.close(),
  };
}

/** Ignores a line truncated by a crash. */
async function readEntries(path: string, location: BackupLocation): Promise<Entry[]> {
  const text = await readFile(path, "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => {
    try {
      const entry = JSON.parse(line) as Entry;
      return isPartOf(location, entry.stream, entry.object) ? [entry] : [];
    } catch {
      return [];
    }
  });
}
