import { inBackground } from "@holdfast/common/background.ts";
import { readListenersFile } from "@holdfast/common/listeners-file.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ListenerReports } from "./listener-reports.ts";

interface ListenerFileDeps {
  /** Name of the process in the reports. */
  readonly process: string;
  /** Directory in which the process writes its listeners; empty if no such process runs on this host. */
  readonly directory: string;
  readonly reports: Pick<ListenerReports, "add">;
  readonly log: Pick<Log, "error">;
}

const pollIntervalMs = 5_000;

/** Reports the listeners that a process on this host writes to a file, because it follows no feed of the controller. */
export function followListenerFile({ process, directory, reports, log }: ListenerFileDeps): { close(): void } {
  if (directory === "") return { close() {} };
  let reported = "";
  let release = () => {};

  async function read(): Promise<void> {
    const listeners = await readListenersFile(directory);
    const text = listeners.join();
    if (text === reported) return;
    reported = text;
    const releaseBefore = release;
    release = reports.add(process, listeners);
    releaseBefore();
  }

  const poll = () => inBackground(log, `listeners of the ${process}`, read());
  const polling = setInterval(poll, pollIntervalMs);
  polling.unref();
  poll();
  return { close: () => clearInterval(polling) };
}
