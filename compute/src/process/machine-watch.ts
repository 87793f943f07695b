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
 * Reports starts and ends of machines, by any controller, without polling. A start writes its run file, which inotify
 * reports; a running machine has its `alive` pipe open, and the kernel closes the pipe with its last process.
 */
export function watchMachines(layout: Layout, onChange: (id: string) => void, log: Log): { close(): void } {
  mkdirSync(layout.running, { recursive: true });
  const followed = new Map<string, Socket | undefined>();
  let closed = false;

  /** Waits for the machine's end. `recheckMs`, which doubles, is the delay while it neither runs nor has ended. */
  async function follow(id: string, recheckMs = 2): Promise<void> {
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
        start(id);
      });
      pipe.resume();
    } else if (run !== undefined && isRunning(run)) {
      // The machine is ending: its pipe is closed, and its last process is about to exit.
      await sleep(recheckMs);
      await follow(id, Math.min(recheckMs * 2, 200));
    } else {
      onChange(id);
    }
  }

  function start(id: string): void {
    follow(id).catch((error: Error) => {
      followed.delete(id);
      log.error("machine not watched", { machine: id, error: error.message });
    });
  }

  const starts = watch(layout.running, (_, id) => {
    if (id === null) return;
    onChange(id);
    start(id);
  });
  starts.unref();
  starts.on("error", (error) => log.error("machines not watched", { error: error.message }));
  readdir(layout.running).then(
    (ids) => ids.forEach(start),
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

/** The pipe of a running machine; undefined if no process has it open. Does not wait for a writer. */
async function openAlive(path: string): Promise<Socket | undefined> {
  let fd: number;
  try {
    fd = await openFile(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
  // poll(2) does not report a pipe that has no writer when it is opened; a read reports it immediately.
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
