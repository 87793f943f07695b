import { existsSync, statSync } from "node:fs";
import { segmentsOf } from "../../../keeper/segment-log.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { Instance, SlowLogFacet } from "../engine-driver.ts";
import { slowLogFile } from "./layout.ts";
import { literal, type Session } from "./session.ts";

const segmentBytes = 4 << 20;
const retainedSegments = 4;

/**
 * MySQL's log of statements that took longer than `long_query_time`. An entry begins with its time; further lines are
 * the account, figures, and the statement as it was sent, except passwords, which MySQL replaces.
 */
export const slowLog: SlowLogFacet = {
  path: slowLogFile,
  parse(line) {
    const time = /^# Time: (\d{4}-\d\d-\d\dT[\d:.]+Z)$/.exec(line)?.[1];
    return time === undefined ? undefined : { time: new Date(time), level: "info", message: "slow statement" };
  },
};

export interface SlowStatements {
  /** Enables the log after a start, and begins another segment once one is full. Ignores that a segment fails. */
  record(instance: Instance, session: Session, signal: AbortSignal): Promise<void>;
}

/**
 * The engine starts without the log, since its settings name one file, and continues the newest segment when the agent
 * first observes it.
 */
export function createSlowStatements({ runAsEngine: run }: Pick<EngineDeps, "runAsEngine">): SlowStatements {
  return {
    async record(instance, session, signal) {
      const path = slowLogFile(instance);
      const segments = segmentsOf(path);
      const segment = nextSegment(path, segments);
      const [now] = await session.rows<{ enabled: string; file: string }>(
        "SELECT @@GLOBAL.slow_query_log AS enabled, @@GLOBAL.slow_query_log_file AS file",
      );
      const file = `${path}.${segment}`;
      if (Number(now?.enabled) === 1 && now?.file === file && existsSync(file)) return;
      try {
        // Enabling it opens the file again, which may have been removed.
        await session.rows("SET GLOBAL slow_query_log = OFF");
        await session.rows(`SET GLOBAL slow_query_log_file = ${literal(file)}`);
        await session.rows("SET GLOBAL slow_query_log = ON");
        const expired = segments.filter((each) => each <= segment - retainedSegments);
        if (expired.length > 0) await run(["rm", "-f", ...expired.map((each) => `${path}.${each}`)], { signal });
      } catch {
        signal.throwIfAborted();
        // Such as on a full disk. The engine is healthy without this log, and the next observation tries again.
      }
    },
  };
}

/** The newest segment, or the one after it once that is full. */
function nextSegment(path: string, segments: readonly number[]): number {
  const newest = segments.at(-1);
  if (newest === undefined) return 1;
  return statSync(`${path}.${newest}`).size < segmentBytes ? newest : newest + 1;
}
