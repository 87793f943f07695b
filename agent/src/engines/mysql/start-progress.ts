import type { StartProgress } from "../engine-driver.ts";

const recovers = "The engine recovers after a crash";
/** InnoDB prints each 5 MiB that it has read; every change of the progress is reported to the controller. */
const stepMib = 32;

/**
 * Reads the progress of a crash recovery from the notes that InnoDB prints while the engine accepts no connections. It
 * first reads the redo log since the last checkpoint, and then applies it in batches.
 */
export function startProgress(): StartProgress {
  let checkpoint = 0;
  let progress: string | undefined;

  function after(line: string): string | undefined {
    const [, found] = /The latest found checkpoint is at lsn = (\d+)/.exec(line) ?? [];
    if (found !== undefined) checkpoint = Number(found);
    if (/\[InnoDB\] Starting crash recovery\./.test(line)) return `${recovers}.`;
    const [, scanned] = /Doing recovery: scanned up to log sequence number (\d+)/.exec(line) ?? [];
    if (scanned !== undefined) {
      const steps = Math.floor((Number(scanned) - checkpoint) / 1024 ** 2 / stepMib);
      return steps === 0 ? `${recovers}.` : `${recovers}: it has read ${steps * stepMib} MiB of its redo log.`;
    }
    const [, applied] = /\[InnoDB\] (\d{1,3})%$/.exec(line) ?? [];
    if (applied !== undefined) return `${recovers}: it has applied ${applied}% of the redo log that it has read.`;
    return /\] MySQL Server - start\.|InnoDB initialization has ended|ready for connections/.test(line)
      ? undefined
      : progress;
  }

  return (line) => {
    progress = after(line);
    return progress;
  };
}
