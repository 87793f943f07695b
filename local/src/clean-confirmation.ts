import { createInterface } from "node:readline";
import type { ReadStream, WriteStream } from "node:tty";
import { UsageError } from "./user-error.ts";

/** Asks the user to agree; throws a UsageError if the user does not, or cannot be asked. */
export type Confirm = (question: string) => Promise<void>;

/** Asks at a terminal; the signal is that of Ctrl-C, which is a no. */
export function confirmAt(
  input: Pick<ReadStream, "isTTY"> & NodeJS.ReadableStream,
  screen: Pick<WriteStream, "write">,
  signal: AbortSignal,
): Confirm {
  return async (question) => {
    if (!input.isTTY) throw new UsageError(`${question} There is no terminal to ask on; use --yes`);
    screen.write(`${question} [y/N] `);
    const lines = createInterface({ input, terminal: false, signal });
    try {
      for await (const line of lines) {
        if (!signal.aborted && /^y(es)?$/i.test(line.trim())) return;
        break;
      }
    } finally {
      lines.close();
    }
    throw new UsageError("nothing was changed");
  };
}
