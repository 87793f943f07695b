import { join } from "node:path";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createSegmentLog } from "../../../keeper/segment-log.ts";
import type { LogLevel } from "../../engines/engine-driver.ts";
import type { LogFile } from "../log-reader.ts";

/** Lines of the platform about an app, which are read together with those of its releases. */
export interface PlatformLog {
  print(level: LogLevel, message: string): void;
  readonly file: LogFile;
}

const size = { maxBytes: 1 << 20, keep: 2 } as const;

export function createPlatformLog(stateDir: string, now: () => number, errors: Pick<Log, "error">): PlatformLog {
  const path = join(stateDir, "log", "platform.log");
  return {
    print(level, message) {
      const log = createSegmentLog({ path, ...size, owner: undefined });
      log.append(Buffer.from(`${new Date(now()).toISOString()} ${level} ${message.replaceAll("\n", " ")}\n`));
      inBackground(errors, "write a line of the platform", log.close());
    },
    file: { component: "platform", path, parse: parseLine },
  };
}

function parseLine(line: string): ReturnType<LogFile["parse"]> {
  const match = /^(\S+Z) (debug|info|warning|error) (.*)$/s.exec(line);
  if (match === null) return undefined;
  const [, time = "", level, message = ""] = match;
  return { time: new Date(time), level: level as LogLevel, message };
}
