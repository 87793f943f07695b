import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "@holdfast/common/log.ts";
import { createZone, type Zone, type ZoneChange, type ZoneSnapshot } from "./zone.ts";

const format = "holdfast-zone 1";

/**
 * The zone on disk, for restarts without controllers. `zone.json` is a full zone; `zone.log` contains the changes
 * since, so that a change of a large zone writes only the change. The first line of `zone.json` is `holdfast-zone 1
 * <SHA-256>`; the first line of `zone.log` is the same SHA-256; each other line is `<SHA-256> <JSON>`.
 */
export interface ZoneFile {
  /** Reads the zone; an empty zone if the file is absent or damaged. */
  read(): Promise<Zone>;
  /** Writes a full zone; resolves when it is on disk. A crash leaves the previous one. */
  write(zone: ZoneSnapshot): Promise<void>;
  /** Appends changes; resolves when they are on disk. A crash leaves a prefix of them. Call it only after `write`. */
  append(changes: readonly ZoneChange[]): Promise<void>;
  /** True if the log is longer than the zone, so that a full write pays off. */
  readonly needsCompaction: boolean;
}

/** A log up to this size is never compacted, however small the zone is. */
const compactLogBytes = 1 << 20;

export function createZoneFile(directory: string, log: Log): ZoneFile {
  const file = join(directory, "zone.json");
  const logFile = join(directory, "zone.log");
  let zoneBytes = 0;
  let logBytes = 0;
  /**
   * Checksum of the zone that the log belongs to; after a crash, the log may belong to another zone. Empty without a
   * zone on disk.
   */
  let zoneSum = "";

  async function readZone(): Promise<ZoneSnapshot | undefined> {
    const text = await readFile(file, "utf8").catch(() => undefined);
    if (text === undefined) return undefined;
    const end = text.indexOf("\n");
    const body = text.slice(end + 1);
    const sum = checksum(body);
    if (text.slice(0, end) !== `${format} ${sum}`) {
      log.error("damaged zone file ignored", { file });
      return undefined;
    }
    zoneSum = sum;
    zoneBytes = text.length;
    return JSON.parse(body) as ZoneSnapshot;
  }

  /** Applies the log up to the first damaged line; the controller sends the remainder again. */
  async function readLog(zone: Zone): Promise<void> {
    const text = await readFile(logFile, "utf8").catch(() => "");
    const [owner, ...lines] = text.split("\n");
    if (owner !== zoneSum) return;
    logBytes = text.length;
    for (const line of lines) {
      const change = line.slice(line.indexOf(" ") + 1);
      if (!line.startsWith(`${checksum(change)} `)) {
        // Lines after the damaged one would be ignored at the next start, so the next write is a full one.
        if (line !== "") zoneSum = "";
        return;
      }
      const parsed = JSON.parse(change) as Omit<ZoneChange, "revision"> & { revision: string };
      zone.apply({ ...parsed, revision: BigInt(parsed.revision) });
    }
  }

  return {
    async read() {
      const zone = createZone(await readZone());
      await readLog(zone);
      return zone;
    },
    async write(zone) {
      await mkdir(directory, { recursive: true });
      const body = JSON.stringify(zone);
      const next = `${file}.new`;
      const text = `${format} ${checksum(body)}\n${body}`;
      await writeSynced(next, "w", text);
      await rename(next, file);
      zoneSum = checksum(body);
      zoneBytes = text.length;
      logBytes = 0;
    },
    async append(changes) {
      const lines = changes.map(lineOf).join("");
      const text = logBytes === 0 ? `${zoneSum}\n${lines}` : lines;
      await writeSynced(logFile, logBytes === 0 ? "w" : "a", text);
      logBytes += text.length;
    },
    get needsCompaction() {
      return zoneSum === "" || logBytes > Math.max(zoneBytes, compactLogBytes);
    },
  };
}

function lineOf({ revision, reset, synced, origin, records, controllers }: ZoneChange): string {
  const change = JSON.stringify({
    revision: revision.toString(),
    reset,
    synced,
    origin,
    records: records.map(({ name, addresses, ttlS }) => ({ name, addresses, ttlS })),
    controllers,
  });
  return `${checksum(change)} ${change}\n`;
}

async function writeSynced(path: string, flags: "w" | "a", text: string): Promise<void> {
  const handle: FileHandle = await open(path, flags, 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function checksum(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
