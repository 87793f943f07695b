import type { Screen } from "./output.ts";

/** Where something is that takes time. */
export interface Step {
  readonly status: string;
  readonly current_task: string | null;
  readonly progress_pct: number;
}

/** Shows how far a wait is. */
export interface Progress {
  update(step: Step): void;
  /** Removes the line of a terminal. */
  end(): void;
}

const width = 20;

/** A bar with the step's name on a terminal; a line for each step elsewhere. */
export function createProgress(screen: Screen, name: string): Progress {
  let step = "";
  return {
    update({ status, current_task, progress_pct }) {
      const now = current_task ?? status;
      if (screen.isTTY === true) {
        const done = Math.round((progress_pct / 100) * width);
        const bar = `${"#".repeat(done)}${".".repeat(width - done)}`;
        const line = `${name} [${bar}] ${String(progress_pct).padStart(3)}% ${now}`;
        // A line that wraps could not be erased.
        screen.write(`\r\u001b[K${line.slice(0, (screen.columns ?? 80) - 1)}`);
      } else if (now !== step) {
        screen.write(`${name}: ${now} ${progress_pct}%\n`);
      }
      step = now;
    },
    end() {
      if (screen.isTTY === true) screen.write("\r\u001b[K");
    },
  };
}
