import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { prefixOf } from "@holdfast/controller/kernel/store/resource.ts";
import type { Death, DeathRule } from "./die-after-writes.ts";

/** Controllers of a platform that die right after their writes; see die-after-writes.ts. */
export interface DyingControllers {
  /** Environment that the platform is started with. */
  readonly environment: Readonly<Record<string, string>>;
  /** While `run` is in progress, each controller dies after every nth write of such kinds, `most` times in all. */
  during<T>(schedule: DeathSchedule, run: () => Promise<T>): Promise<Died<T>>;
  remove(): void;
}

export interface DeathSchedule {
  readonly kinds: readonly string[];
  readonly nth: number;
  readonly most?: number;
}

export interface Died<T> {
  readonly ended: T;
  readonly deaths: readonly Death[];
}

export function createDyingControllers(): DyingControllers {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-dying-"));
  const ruleFile = join(directory, "rule.json");
  const deathsFile = `${ruleFile}.deaths`;
  return {
    environment: {
      NODE_OPTIONS: `--import=${join(import.meta.dirname, "die-after-writes.ts")}`,
      DIES_BY: ruleFile,
    },
    async during({ kinds, ...rest }, run) {
      const rule: DeathRule = { prefixes: kinds.map((name) => prefixOf({ name })), ...rest };
      writeFileSync(deathsFile, "");
      writeFileSync(ruleFile, JSON.stringify(rule));
      try {
        const ended = await run();
        return { ended, deaths: deathsOf(readFileSync(deathsFile, "utf8")) };
      } finally {
        rmSync(ruleFile);
      }
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

function deathsOf(text: string): readonly Death[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}
