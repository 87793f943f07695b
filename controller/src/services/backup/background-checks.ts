import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";

/** How far one check is. */
export type CheckState =
  | { readonly kind: "running"; readonly bytes: number }
  | { readonly kind: "passed" }
  | { readonly kind: "failed"; readonly error: Error };

/** Checks that take longer than a reconcile may, a few at a time. A restart forgets them: whoever asked begins anew. */
export interface BackgroundChecks {
  /** What became of it; the end is told once. Undefined for one that was not begun. */
  look(id: string): CheckState | undefined;
  /** Nothing happens when it is under way. */
  begin(id: string, check: (onProgress: (bytes: number) => void) => Promise<unknown>): void;
}

const atOnce = 2;

/** `onEnd` is told of each that ended. */
export function createBackgroundChecks(log: Pick<Log, "error">, onEnd: (id: string) => void): BackgroundChecks {
  const states = new Map<string, CheckState>();
  const waiting: (() => void)[] = [];
  let running = 0;

  async function run(id: string, check: (onProgress: (bytes: number) => void) => Promise<unknown>): Promise<void> {
    try {
      await check((bytes) => states.set(id, { kind: "running", bytes }));
      states.set(id, { kind: "passed" });
    } catch (error) {
      states.set(id, { kind: "failed", error: error instanceof Error ? error : new Error(String(error)) });
    }
    running -= 1;
    waiting.shift()?.();
    onEnd(id);
  }

  return {
    look(id) {
      const state = states.get(id);
      if (state !== undefined && state.kind !== "running") states.delete(id);
      return state;
    },
    begin(id, check) {
      if (states.has(id)) return;
      states.set(id, { kind: "running", bytes: 0 });
      const start = () => {
        running += 1;
        inBackground(log, "check of a backup", run(id, check));
      };
      if (running < atOnce) start();
      else waiting.push(start);
    },
  };
}
