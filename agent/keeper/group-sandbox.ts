import { bootId } from "./boot-clock.ts";
import type { Sandbox, SandboxTrace } from "./sandbox.ts";
import { signalIfAlive } from "./signal-process.ts";
import { allPids, isAlive, linkOf, statOf } from "./proc-table.ts";

/**
 * Sandbox without namespaces. Its members are all processes that share the first process's output, in any session or
 * process group, and all processes of the first one's process group.
 */
export async function createGroupSandbox(childPid: number): Promise<Sandbox> {
  const first = statOf(childPid);
  const output = linkOf(childPid, "fd/1") ?? "";
  const members = () => withOutput(output, childPid);
  return {
    pid: childPid,
    signal(signal) {
      if (first !== undefined && isAlive(first)) signalIfAlive(childPid, signal);
    },
    killAll() {
      for (const pid of members()) signalIfAlive(pid, "SIGKILL");
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

/** Kills the processes that remain of a run by an earlier keeper; returns true if there were none. */
export function killRemaining(trace: SandboxTrace): boolean {
  if (trace.bootId !== bootId()) return true;
  const first = { pid: trace.pid, startTicks: trace.startTicks };
  // The process group's number may have been reused: it counts only while its leader is the same process.
  const remaining = trace.output === "" ? [] : withOutput(trace.output, isAlive(first) ? trace.pid : -1);
  if (isAlive(first)) remaining.push(trace.pid);
  for (const pid of remaining) signalIfAlive(pid, "SIGKILL");
  return remaining.length === 0;
}
