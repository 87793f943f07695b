import { readFileSync } from "node:fs";

/**
 * Pid of the program of a spawned `inImage`, in the host's namespace: the only child of `unshare`. Without `unshare`,
 * the spawned pid itself. Undefined if the process has ended.
 */
export function programPid(spawned: number): number | undefined {
  try {
    if (readFileSync(`/proc/${spawned}/comm`, "utf8").trim() !== "unshare") return spawned;
    const children = readFileSync(`/proc/${spawned}/task/${spawned}/children`, "utf8").trim();
    return children === "" ? undefined : Number(children.split(" ")[0]);
  } catch {
    // Its /proc directory disappeared during the read.
    return undefined;
  }
}
