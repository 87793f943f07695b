import { bootId } from "./boot-clock.ts";
import type { Cage, CageTrace } from "./cage.ts";
import { killQuietly } from "./kill-quietly.ts";
import { allPids, isAlive, linkOf, statOf } from "./proc-table.ts";

/**
 * Without namespaces: all processes that share the output which the first one was given, whatever sessions and groups
 * they made for themselves, and those of its group.
 */
export async function createGroupCage(childPid: number): Promise<Cage> {
  const first = statOf(childPid);
  const output = linkOf(childPid, "fd/1") ?? "";
  const members = () => withOutput(output, childPid);
  return {
    pid: childPid,
    signal(signal) {
      if (first !== undefined && isAlive(first)) killQuietly(childPid, signal);
    },
    killAll() {
      for (const pid of members()) killQuietly(pid, "SIGKILL");
    },
    isEmpty: () => members().length === 0,
    trace: { bootId: bootId(), pid: childPid, startTicks: first?.startTicks ?? "", output },
    close() {},
  };
}

function withOutput(output: string, group: number): number[] {
  return allPids().filter((pid) => {
    const stat = statOf(pid);
    if (stat === undefined || stat.state === "Z") return false;
    if (stat.group === group) return true;
    return output !== "" && (linkOf(pid, "fd/1") === output || linkOf(pid, "fd/2") === output);
  });
}

/** Kills what an earlier keeper left of a component; true when there was nothing. */
export function sweepTrace(trace: CageTrace): boolean {
  if (trace.bootId !== bootId()) return true;
  const first = { pid: trace.pid, startTicks: trace.startTicks };
  // The group's number may be someone else's by now: it counts only while its leader is the same process.
  const left = trace.output === "" ? [] : withOutput(trace.output, isAlive(first) ? trace.pid : -1);
  if (isAlive(first)) left.push(trace.pid);
  for (const pid of left) killQuietly(pid, "SIGKILL");
  return left.length === 0;
}
