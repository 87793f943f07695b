import { createHash } from "node:crypto";
import { mkdir, open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "@holdfast/common/log.ts";
import type { ZoneSnapshot } from "./zone.ts";

const format = "holdfast-zone 1";

/** The zone on disk: what is answered from after a restart, with controllers away. */
export interface ZoneFile {
  /** Undefined when there is none, or none that is whole. */
  read(): Promise<ZoneSnapshot | undefined>;
  /** Resolves when it is on disk; a crash leaves the one before. */
  write(zone: ZoneSnapshot): Promise<void>;
}

export function createZoneFile(directory: string, log: Log): ZoneFile {
  const file = join(directory, "zone.json");
  return {
    async read() {
      const text = await readFile(file, "utf8").catch(() => undefined);
      if (text === undefined) return undefined;
      const end = text.indexOf("\n");
      const body = text.slice(end + 1);
      if (text.slice(0, end) !== `${format} ${checksum(body)}`) {
        log.error("zone file is damaged and not used", { file });
        return undefined;
      }
      return JSON.parse(body) as ZoneSnapshot;
    },
    async write(zone) {
      await mkdir(directory, { recursive: true });
      const body = JSON.stringify(zone);
      const next = `${file}.new`;
      const handle = await open(next, "w", 0o600);
      try {
        await handle.writeFile(`${format} ${checksum(body)}\n${body}`);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(next, file);
    },
  };
}

function checksum(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
