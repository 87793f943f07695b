import { join } from "node:path";
import { readIfThere } from "./durable-file.ts";

/** The machine's own control group, as it is seen from inside. */
export interface ControlGroup {
  /** Processes of the machine that the kernel ended for want of memory since it was started; undefined without a group. */
  outOfMemoryKills(): Promise<number | undefined>;
}

/** Where each version of control groups counts, below the directory. */
const counters = ["memory/memory.oom_control", "memory.events"];

/** `directory` is empty where the machine has none. */
export function createControlGroup(directory: string): ControlGroup {
  return {
    async outOfMemoryKills() {
      if (directory === "") return undefined;
      for (const name of counters) {
        const text = (await readIfThere(join(directory, name)))?.toString("utf8");
        const count = /^oom_kill (\d+)$/m.exec(text ?? "")?.[1];
        if (count !== undefined) return Number(count);
      }
      return undefined;
    },
  };
}
