import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { prefixOf } from "@holdfast/controller/kernel/store/resource.ts";
import type { Crash, CrashRule } from "./crash-after-writes.ts";

/** Controllers of a platform that crash right after their writes; see crash-after-writes.ts. */
export interface CrashingControllers {
  /** Environment that the platform is started with. */
  readonly environment: Readonly<Record<string, string>>;
  /**
   * While `run` is in progress, each controller crashes after every nth write of such kinds, at most `max` times in
   * total.
   */
  during<T>(schedule: CrashSchedule, run: () => Promise<T>): Promise<CrashedRun<T>>;
  remove(): void;
}

export interface CrashSchedule {
  readonly kinds: readonly string[];
  readonly nth: number;
  readonly max?: number;
}

export interface CrashedRun<T> {
  readonly result: T;
  readonly crashes: readonly Crash[];
}

export function createCrashingControllers(): CrashingControllers {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-crashing-"));
  const ruleFile = join(directory, "rule.json");
  const crashesFile = `${ruleFile}.crashes`;
  return {
    environment: {
      // The bundle of a controller contains its etcd client, which nothing can replace from outside.
      HOLDFAST_PROGRAMS: "source",
      NODE_OPTIONS: `--import=${join(import.meta.dirname, "crash-after-writes.ts")}`,
      CRASH_RULE_FILE: ruleFile,
    },
    async during({ kinds, ...rest }, run) {
      const rule: CrashRule = { prefixes: kinds.map((name) => prefixOf({ name })), ...rest };
      writeFileSync(crashesFile, "");
      writeFileSync(ruleFile, JSON.stringify(rule));
      try {
        const result = await run();
        return { result, crashes: crashesOf(readFileSync(crashesFile, "utf8")) };
      } finally {
        rmSync(ruleFile);
      }
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

function crashesOf(text: string): readonly Crash[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}
