import { readFileSync } from "node:fs";

/**
 * Pid of the program behind a spawned `inImage`, as this host sees it: `unshare` stays in front and the program is its
 * only child. The spawned pid itself where there is no `unshare`. Undefined when the process is gone.
 */
export function programPid(spawned: number): number | undefined {
  try {
    if (readFileSync(`/proc/${spawned}/comm`, "utf8").trim() !== "unshare") return spawned;
    const children = readFileSync(`/proc/${spawned}/task/${spawned}/children`, "utf8").trim();
    return children === "" ? undefined : Number(children.split(" ")[0]);
  } catch {
    // Its directory in /proc went away while it was read.
    return undefined;
  }
}
