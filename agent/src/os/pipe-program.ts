import { spawn } from "node:child_process";
import { pipeline, Readable } from "node:stream";
import { ProgramFailed } from "./program.ts";

/** A program whose input and output are streamed, for output too large to buffer. */
export interface PipedProgram {
  /** Standard output of the program; throws the program's failure instead of ending. */
  readonly output: AsyncIterable<Buffer>;
  /** Resolves with the standard error after a successful end; rejects with ProgramFailed. */
  readonly ended: Promise<string>;
  signal(signal: NodeJS.Signals): void;
}

export type PipeProgram = (
  argv: readonly string[],
  options: {
    readonly input?: AsyncIterable<Uint8Array>;
    readonly env?: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
  },
) => PipedProgram;

const maxErrorOutput = 64_000;

export const pipeProgram: PipeProgram = ([command = "", ...args], { input, env, signal }) => {
  const child = spawn(command, args, {
    cwd: "/",
    stdio: ["pipe", "pipe", "pipe"],
    signal,
    killSignal: "SIGKILL",
    ...(env !== undefined && { env: { ...process.env, ...env } }),
  });
  let errorOutput = "";
  let inputFailure: Error | undefined;
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errorOutput = (errorOutput + text).slice(-maxErrorOutput);
  });
  const ended = new Promise<string>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, killedBy) => {
      if (inputFailure !== undefined) reject(inputFailure);
      else if (code === 0) resolve(errorOutput);
      else
        reject(new ProgramFailed(command, code === null ? `died of ${killedBy}` : `ended with ${code}`, errorOutput));
    });
  });
  ended.catch(() => undefined);
  if (input === undefined) child.stdin.end();
  else {
    pipeline(Readable.from(input), child.stdin, (error) => {
      // A program that closed its input reports the reason itself.
      if (error == null || ("code" in error && error.code === "EPIPE")) return;
      inputFailure = error;
      child.kill("SIGKILL");
    });
  }

  async function* output(): AsyncGenerator<Buffer> {
    yield* child.stdout as AsyncIterable<Buffer>;
    await ended;
  }

  return {
    output: output(),
    ended,
    signal: (name) => {
      child.kill(name);
    },
  };
};
