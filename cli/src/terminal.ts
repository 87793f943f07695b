import type { ReadStream, WriteStream } from "node:tty";
import { Interrupted, UsageError } from "./exit-code.ts";
import { printableLines } from "./printable.ts";

/** Asks the user at the terminal; without a terminal, reads answers from lines of standard input. */
export interface Terminal {
  readonly isInteractive: boolean;
  /** The user's answer, or the next line. Throws UsageError at the end of input. */
  ask(question: string): Promise<string>;
  /** Asks without echo. */
  askSecret(question: string): Promise<string>;
  /** All of standard input. */
  readAll(): Promise<Buffer>;
  /** Asks the user to agree; false without a terminal. */
  confirm(question: string): Promise<boolean>;
}

export function createTerminal(input: ReadStream, screen: WriteStream): Terminal {
  let lines: AsyncIterator<string> | undefined;

  async function nextLine(question: string): Promise<string> {
    if (lines === undefined) {
      const { createInterface } = await import("node:readline");
      lines = createInterface({ input, terminal: false })[Symbol.asyncIterator]();
    }
    const { done, value } = await lines.next();
    if (done === true) throw new UsageError(`${question}: standard input has no more lines`);
    return value;
  }

  async function askUser(prompt: string, { silent = false } = {}): Promise<string> {
    const { read } = await import("read");
    try {
      return await read({ prompt: printableLines(prompt), silent, input, output: screen });
    } catch (error) {
      throw error instanceof Error && error.message === "canceled" ? new Interrupted() : error;
    } finally {
      // Without echo the Enter key does not end the line.
      if (silent) screen.write("\n");
    }
  }

  return {
    isInteractive: input.isTTY,
    ask: (question) => (input.isTTY ? askUser(`${question}:`) : nextLine(question)),
    askSecret: (question) => (input.isTTY ? askUser(`${question}:`, { silent: true }) : nextLine(question)),
    async readAll() {
      const chunks: Uint8Array[] = [];
      for await (const chunk of input) chunks.push(chunk as Uint8Array);
      return Buffer.concat(chunks);
    },
    confirm: async (question) => input.isTTY && /^y(es)?$/i.test((await askUser(`${question} [y/N]`)).trim()),
  };
}
