import type { Screen } from "./output.ts";
import { printable } from "./printable.ts";

/** The current step of a wait. */
export interface Step {
  readonly status: string;
  readonly current_task: string | null;
  readonly progress_pct: number;
}

/** Shows the progress of a wait. */
export interface Progress {
  update(step: Step): void;
  /** Shows that the API does not respond; the next update replaces it. */
  outage(): void;
  /** Erases the progress line. */
  end(): void;
}

const width = 20;

/** Shows a bar with the step on a terminal; otherwise one line per step. */
export function createProgress(screen: Screen, subject: string): Progress {
  const name = printable(subject);
  let step = "";
  return {
    update({ status, current_task, progress_pct }) {
      const now = printable(current_task ?? status);
      if (screen.isTTY === true) {
        const done = Math.round((progress_pct / 100) * width);
        const bar = `${"#".repeat(done)}${".".repeat(width - done)}`;
        const line = `${name} [${bar}] ${String(progress_pct).padStart(3)}% ${now}`;
        // Cut, because a wrapped line cannot be erased.
        screen.write(`\r\u001b[K${line.slice(0, (screen.columns ?? 80) - 1)}`);
      } else if (now !== step) {
        screen.write(`${name}: ${now} ${progress_pct}%\n`);
      }
      step = now;
    },
    outage() {
      step = "";
      const line = `${name}: the API does not respond; the wait continues`;
      if (screen.isTTY === true) screen.write(`\r\u001b[K${line.slice(0, (screen.columns ?? 80) - 1)}`);
      else screen.write(`${line}\n`);
    },
    end() {
      if (screen.isTTY === true) screen.write("\r\u001b[K");
    },
  };
}
