import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "@holdfast/common/log.ts";
import { createZone, type Zone, type ZoneChange, type ZoneSnapshot } from "./zone.ts";

const format = "holdfast-zone 1";

/**
 * The zone on disk: what is answered from after a restart, with controllers away. `zone.json` is a whole zone, `zone.log` what
 * changed since, so that a change of a large zone costs what the change is.
 */
export interface ZoneFile {
  /** The zone as it was last written; an empty one when there is none that is whole. */
  read(): Promise<Zone>;
  /** Resolves when it is on disk; a crash leaves the one before. */
  write(zone: ZoneSnapshot): Promise<void>;
  /** Resolves when it is on disk; a crash leaves the first of them, or all. To be called after a write. */
  append(changes: readonly ZoneChange[]): Promise<void>;
  /** There are so many changes on disk that the whole zone takes less. */
  readonly isLong: boolean;
}

/** A log up to this size is no burden to a start, however small the zone is. */
const shortLogBytes = 1 << 20;

export function createZoneFile(directory: string, log: Log): ZoneFile {
  const file = join(directory, "zone.json");
  const logFile = join(directory, "zone.log");
  let zoneBytes = 0;
  let logBytes = 0;
  /** Of the zone that the log belongs to; a log of another one is what a crash left. Empty: there is none on disk. */
  let zoneSum = "";

  async function readZone(): Promise<ZoneSnapshot | undefined> {
    const text = await readFile(file, "utf8").catch(() => undefined);
    if (text === undefined) return undefined;
    const end = text.indexOf("\n");
    const body = text.slice(end + 1);
    const sum = checksum(body);
    if (text.slice(0, end) !== `${format} ${sum}`) {
      log.error("zone file is damaged and not used", { file });
      return undefined;
    }
    zoneSum = sum;
    zoneBytes = text.length;
    return JSON.parse(body) as ZoneSnapshot;
  }

  /** Up to the first line that is not whole: what a crash cut is sent again by the controller. */
  async function readLog(zone: Zone): Promise<void> {
    const text = await readFile(logFile, "utf8").catch(() => "");
    const [owner, ...lines] = text.split("\n");
    if (owner !== zoneSum) return;
    logBytes = text.length;
    for (const line of lines) {
      const change = line.slice(line.indexOf(" ") + 1);
      if (!line.startsWith(`${checksum(change)} `)) {
        // What follows would be lost on the next start: the next write is of the whole zone.
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
      await put(next, "w", text);
      await rename(next, file);
      zoneSum = checksum(body);
      zoneBytes = text.length;
      logBytes = 0;
    },
    async append(changes) {
      const lines = changes.map(lineOf).join("");
      const text = logBytes === 0 ? `${zoneSum}\n${lines}` : lines;
      await put(logFile, logBytes === 0 ? "w" : "a", text);
      logBytes += text.length;
    },
    get isLong() {
      return zoneSum === "" || logBytes > Math.max(zoneBytes, shortLogBytes);
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

async function put(path: string, flags: "w" | "a", text: string): Promise<void> {
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
