import { closeSync, constants, mkdirSync, open, readSync, watch } from "node:fs";
import { readdir } from "node:fs/promises";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Log } from "@holdfast/common/log.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { Layout } from "../local/machine-paths.ts";
import { isRunning, readRun } from "./machine-run.ts";

const openFile = promisify(open);

/**
 * Tells of starts and ends of machines, whichever controller started them, without polling: a start writes its run file,
 * which inotify shows; a running machine holds its `alive` pipe open, and the kernel ends the pipe with its last process.
 */
export function watchMachines(layout: Layout, onChange: (id: string) => void, log: Log): { close(): void } {
  mkdirSync(layout.running, { recursive: true });
  const followed = new Map<string, Socket | undefined>();
  let closed = false;

  /** Holds on to the machine's end. `lookAgainMs` passes when it is neither running nor gone, and doubles. */
  async function follow(id: string, lookAgainMs = 2): Promise<void> {
    if (closed || followed.has(id)) return;
    followed.set(id, undefined);
    const pipe = await openAlive(layout.machine(id).alive);
    const run = await readRun(layout.machine(id).run);
    if (closed) {
      pipe?.destroy();
      return;
    }
    followed.delete(id);
    if (pipe !== undefined) {
      followed.set(id, pipe);
      pipe.once("close", () => {
        followed.delete(id);
        begin(id);
      });
      pipe.resume();
    } else if (run !== undefined && isRunning(run)) {
      // It ends: its pipe is closed already, and its last process is about to go.
      await sleep(lookAgainMs);
      await follow(id, Math.min(lookAgainMs * 2, 200));
    } else {
      onChange(id);
    }
  }

  function begin(id: string): void {
    follow(id).catch((error: Error) => {
      followed.delete(id);
      log.error("machine is not watched", { machine: id, error: error.message });
    });
  }

  const starts = watch(layout.running, (_, id) => {
    if (id === null) return;
    onChange(id);
    begin(id);
  });
  starts.unref();
  starts.on("error", (error) => log.error("machines are not watched", { error: error.message }));
  readdir(layout.running).then(
    (ids) => ids.forEach(begin),
    (error: Error) => log.error("machines not listed", { error: error.message }),
  );

  return {
    close() {
      closed = true;
      starts.close();
      for (const pipe of followed.values()) pipe?.destroy();
      followed.clear();
    },
  };
}

/** The pipe that a running machine holds open; undefined when nobody does. Opening does not wait for a writer. */
async function openAlive(path: string): Promise<Socket | undefined> {
  let fd: number;
  try {
    fd = await openFile(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
  // Of a pipe that had no writer when it was opened, poll(2) says nothing ever; a read says it at once.
  if (!hasWriter(fd)) {
    closeSync(fd);
    return undefined;
  }
  const pipe = new Socket({ fd, readable: true, writable: false });
  pipe.on("error", () => pipe.destroy());
  pipe.unref();
  return pipe;
}

function hasWriter(fd: number): boolean {
  try {
    return readSync(fd, Buffer.alloc(1)) > 0;
  } catch (error) {
    if (hasCode(error, "EAGAIN")) return true;
    throw error;
  }
}
