import type { TaskSummary } from "../types.ts";

export interface Progress {
  update(summary: TaskSummary): void;
  /** Removes the line of a terminal. */
  end(): void;
}

interface Screen {
  readonly isTTY?: boolean;
  write(text: string): unknown;
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
        screen.write(
          `\r\u001b[K${name} [${"#".repeat(done)}${".".repeat(width - done)}] ${String(progress_pct).padStart(3)}% ${now}`,
        );
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
