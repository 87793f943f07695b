import type { EngineDriver } from "../../engines/engine-driver.ts";
import type { TextLogReader } from "../log-reader.ts";
import type { InstanceStatus } from "./instance-status.ts";

export interface StartReportDeps {
  readonly logs: Pick<TextLogReader, "follow">;
  /** Cursor of the log before the start. */
  readonly mark: string;
  readonly status: Pick<InstanceStatus, "setState">;
}

/** Reports what a starting engine prints about its progress, until it is closed. */
export interface StartReport {
  close(): Promise<void>;
}

/**
 * Starts the report. An engine that recovers after a crash accepts no connections, perhaps for minutes, so its log is
 * all that distinguishes it from one that hangs.
 */
export function reportStart(
  driver: Pick<EngineDriver, "startProgress">,
  { logs, mark, status }: StartReportDeps,
): StartReport {
  const ended = new AbortController();
  const read = driver.startProgress?.();
  let progress: string | undefined;
  let reported: string | undefined;
  const following =
    read === undefined
      ? Promise.resolve()
      : logs.follow(
          mark,
          {
            onLine: (line) => {
              progress = read(line);
            },
            onRead: () => {
              if (progress === reported) return;
              reported = progress;
              status.setState("starting", progress);
            },
          },
          ended.signal,
        );
  // A log that cannot be read fails the calls for it, and not the start.
  const settled = following.catch(() => undefined);
  return {
    close() {
      ended.abort();
      return settled;
    },
  };
}
