import type { StartProgress } from "../engine-driver.ts";

const recovers = "The engine recovers after a crash";

/** Reads the progress of a crash recovery, during which the engine refuses connections; it prints one line in 10 s. */
export function startProgress(): StartProgress {
  let progress: string | undefined;

  function after(line: string): string | undefined {
    if (line.includes("not properly shut down; automatic recovery in progress")) return `${recovers}.`;
    const [, seconds] = /redo in progress, elapsed time: (\d+)\.\d+ s/.exec(line) ?? [];
    if (seconds !== undefined) return `${recovers}: it has replayed its log for ${seconds} s.`;
    return /starting PostgreSQL|ready to accept (read-only )?connections/.test(line) ? undefined : progress;
  }

  return (line) => {
    progress = after(line);
    return progress;
  };
}
