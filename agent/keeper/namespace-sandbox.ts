import { closeSync, openSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { bootId } from "./boot-clock.ts";
import type { Sandbox } from "./sandbox.ts";
import { allPids, isAlive, linkOf, type ProcessId, statOf } from "./proc-table.ts";
import { signalIfAlive } from "./signal-process.ts";

const pollIntervalMs = 2;

/** Sandbox of the PID namespace that `unshare` created for its child; empty once no process is in it. */
export async function createNamespaceSandbox(unsharePid: number): Promise<Sandbox> {
  const unshared = statOf(unsharePid);
  const first = await findFirst(unsharePid);
  const link = first === undefined ? undefined : linkOf(first.pid, "ns/pid");
  const keeperNamespace = linkOf(process.pid, "ns/pid");
  // An open descriptor prevents the kernel from reusing the namespace's inode number while processes are compared by
  // it.
  const handle = link === undefined || first === undefined ? undefined : openOrUndefined(`/proc/${first.pid}/ns/pid`);

  function members(): number[] {
    if (link === undefined || link === keeperNamespace) return first !== undefined && isAlive(first) ? [first.pid] : [];
    return allPids().filter((pid) => linkOf(pid, "ns/pid") === link && statOf(pid)?.state !== "Z");
  }

  return {
    pid: first?.pid,
    signal(signal) {
      if (first !== undefined && isAlive(first)) signalIfAlive(first.pid, signal);
    },
    killAll() {
      if (first !== undefined && isAlive(first)) signalIfAlive(first.pid, "SIGKILL");
      for (const pid of members()) signalIfAlive(pid, "SIGKILL");
      if (first === undefined && unshared !== undefined && isAlive(unshared)) signalIfAlive(unsharePid, "SIGKILL");
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

/** Returns the child of `unshare`, the first process of the namespace; undefined if unshare ended without one. */
async function findFirst(unsharePid: number): Promise<ProcessId | undefined> {
  for (;;) {
    const parent = statOf(unsharePid);
    if (parent === undefined || parent.state === "Z") return undefined;
    // PIDs are assigned in order, so the child most often has the next number.
    const near = [unsharePid + 1, unsharePid + 2].map(statOf).find((stat) => stat?.parent === unsharePid);
    const child =
      near ??
      allPids()
        .map(statOf)
        .find((stat) => stat?.parent === unsharePid);
    if (child !== undefined) return child;
    await sleep(pollIntervalMs);
  }
}

function openOrUndefined(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch {
    // The process has ended.
    return undefined;
  }
}
