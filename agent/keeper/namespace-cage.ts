import { closeSync, openSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { bootId } from "./boot-clock.ts";
import type { Cage } from "./cage.ts";
import { allPids, isAlive, linkOf, type ProcessId, statOf } from "./proc-table.ts";
import { killQuietly } from "./kill-quietly.ts";

const lookEveryMs = 2;

/** The PID namespace that `unshare` made for its child: empty when no process shows it any more. */
export async function createNamespaceCage(unsharePid: number): Promise<Cage> {
  const unshared = statOf(unsharePid);
  const first = await findFirst(unsharePid);
  const link = first === undefined ? undefined : linkOf(first.pid, "ns/pid");
  const own = linkOf(process.pid, "ns/pid");
  // An open descriptor keeps the namespace's number from being used again while it is asked for.
  const handle = link === undefined || first === undefined ? undefined : openOrUndefined(`/proc/${first.pid}/ns/pid`);

  function members(): number[] {
    if (link === undefined || link === own) return first !== undefined && isAlive(first) ? [first.pid] : [];
    return allPids().filter((pid) => linkOf(pid, "ns/pid") === link && statOf(pid)?.state !== "Z");
  }

  return {
    pid: first?.pid,
    signal(signal) {
      if (first !== undefined && isAlive(first)) killQuietly(first.pid, signal);
    },
    killAll() {
      if (first !== undefined && isAlive(first)) killQuietly(first.pid, "SIGKILL");
      for (const pid of members()) killQuietly(pid, "SIGKILL");
      if (first === undefined && unshared !== undefined && isAlive(unshared)) killQuietly(unsharePid, "SIGKILL");
    },
    isEmpty: () => !(unshared !== undefined && isAlive(unshared)) && members().length === 0,
    trace: {
      bootId: bootId(),
      pid: first?.pid ?? unsharePid,
      startTicks: first?.startTicks ?? unshared?.startTicks ?? "",
      output: "",
    },
    close() {
      if (handle !== undefined) closeSync(handle);
    },
  };
}

/** The child of `unshare`, which is the first process of the namespace; undefined when unshare ended without one. */
async function findFirst(unsharePid: number): Promise<ProcessId | undefined> {
  for (;;) {
    const parent = statOf(unsharePid);
    if (parent === undefined || parent.state === "Z") return undefined;
    // Made after its parent: its number is nearly always the next one, so that is where to look first.
    const near = [unsharePid + 1, unsharePid + 2].map(statOf).find((stat) => stat?.parent === unsharePid);
    const child =
      near ??
      allPids()
        .map(statOf)
        .find((stat) => stat?.parent === unsharePid);
    if (child !== undefined) return child;
    await sleep(lookEveryMs);
  }
}

function openOrUndefined(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch {
    // It ended already.
    return undefined;
  }
}
