import { inBackground } from "@holdfast/common/background.ts";
import { readListenersFile } from "@holdfast/common/listeners-file.ts";
import type { Log } from "@holdfast/common/log.ts";
import { reportedListeners } from "@holdfast/common/open-listeners.ts";
import type { ControllerRegistry } from "./controller-registry.ts";

/**
 * Listeners of this controller and of the processes that follow it. They are published in its registry entry, where
 * every controller reads them.
 */
export interface ListenerReports {
  /**
   * Adds a process's report. It remains until `lingerMs` after the call of the returned function, since the process
   * then moves to another controller.
   */
  add(process: string, listeners: readonly string[]): () => void;
  /** Publishes listeners that this controller has opened since. */
  refresh(): void;
}

/** Maximum number of listeners of one process: a wildcard listener is reported with each address of its host. */
const listenersPerProcessMax = 64;
const reportsMax = 256;
const lingerMs = 10 * 60_000;

export function createListenerReports(
  registry: Pick<ControllerRegistry, "announceListeners">,
  log: Pick<Log, "error">,
): ListenerReports {
  /** Reports by process and listeners, since processes may share an identity; the oldest is evicted first. */
  const reports = new Map<string, readonly string[]>();
  let announced = "";

  function refresh(): void {
    const all = [...new Set([...reportedListeners(), ...[...reports.values()].flat()])];
    const text = all.toSorted().join();
    if (text === announced) return;
    announced = text;
    inBackground(log, "announcement of listeners", registry.announceListeners(all));
  }

  return {
    add(process, listeners) {
      const report = checkedListeners(listeners);
      const key = [process, ...report].join(" ");
      reports.delete(key);
      reports.set(key, report);
      const oldest = reports.keys().next();
      if (reports.size > reportsMax && oldest.done !== true) reports.delete(oldest.value);
      refresh();
      return () => {
        setTimeout(() => {
          // A newer report of the process remains.
          if (reports.get(key) === report && reports.delete(key)) refresh();
        }, lingerMs).unref();
      };
    },
    refresh,
  };
}

/** The entries of a process's report that have the form host:port, at most `listenersPerProcessMax`. */
export function checkedListeners(texts: readonly string[]): string[] {
  const isEndpoint = (text: string) => text.length <= 300 && /:\d{1,5}$/.test(text) && URL.canParse(`tcp://${text}`);
  return texts.slice(0, listenersPerProcessMax).filter(isEndpoint);
}

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
