import { open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { BackupPart } from "@holdfast/common/backup/backup-manifest.ts";
import type { StoredParts } from "@holdfast/common/backup/backup-writer.ts";
import { type BackupPlace, isPartOf } from "@holdfast/common/backup/object-names.ts";

/** Parts of a backup that this machine stored, through all its attempts. It is a file beside the data, and only saves work. */
export interface PartJournal extends StoredParts {
  /** The backup is complete. */
  forget(): Promise<void>;
  close(): Promise<void>;
}

interface Entry extends BackupPart {
  readonly stream: string;
  readonly digest: string;
}

const name = "backup.parts";
/** So that its size does not grow with that of the data: behind them parts are stored again. */
const mostEntries = 250_000;

/** `sizeOf` asks the store: what it does not have as it was written is stored again. */
export async function openPartJournal(
  data: string,
  place: BackupPlace,
  sizeOf: (object: string) => Promise<number | undefined>,
): Promise<PartJournal> {
  const path = join(data, name);
  const known = new Map<string, BackupPart>();
  const keyOf = (stream: string, digest: string) => `${stream} ${digest}`;
  for (const { stream, digest, ...part } of await readEntries(path, place)) known.set(keyOf(stream, digest), part);
  const inherited = new Set(known.values().map(({ object }) => object));
  // One of another backup is over.
  const file = await open(path, known.size === 0 ? "w" : "a", 0o640);

  return {
    async find(stream, digest) {
      const part = known.get(keyOf(stream, digest));
      if (part === undefined || !inherited.has(part.object)) return part;
      return (await sizeOf(part.object)) === part.bytes ? part : undefined;
    },
    async add(stream, digest, part) {
      if (known.size >= mostEntries) return;
      known.set(keyOf(stream, digest), part);
      // On a full disk the backup goes on; an attempt after this one does more than it need.
      await file.appendFile(`${JSON.stringify({ stream, digest, ...part } satisfies Entry)}\n`).catch(() => undefined);
    },
    forget: () => rm(path, { force: true }),
    close: () => file.close(),
  };
}

/** Nothing is lost with a line that a crash cut. */
async function readEntries(path: string, place: BackupPlace): Promise<Entry[]> {
  const text = await readFile(path, "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => {
    try {
      const entry = JSON.parse(line) as Entry;
      return isPartOf(place, entry.stream, entry.object) ? [entry] : [];
    } catch {
      return [];
    }
  });
}
