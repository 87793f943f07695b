import { spawn } from "node:child_process";

/** Runs a program such as initdb to its end and resolves with its output; throws ProgramFailed for a non-zero exit. */
export type RunProgram = (argv: readonly string[], options: RunOptions) => Promise<string>;

export interface RunOptions {
  /** Written to its standard input. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/**
 * A program failed. The message ends with the last lines of its output, or with the lines of a fatal error if there is
 * one, since less relevant lines may follow it.
 */
export class ProgramFailed extends Error {
  override readonly name = "ProgramFailed";
  readonly output: string;

  constructor(program: string, outcome: string, output: string) {
    const lines = output.trim().split("\n");
    const fatal = lines.filter((line) => /\b(FATAL|PANIC):/.test(line));
    super(`${program} ${outcome}: ${(fatal.length > 0 ? fatal : lines).slice(-5).join(" | ")}`);
    this.output = output;
  }
}

const maxOutput = 1_000_000;

/** Resolves with its standard output and error, merged. */
export const runProgram: RunProgram = ([command = "", ...args], { input, env, signal }) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: "/",
      stdio: ["pipe", "pipe", "pipe"],
      signal,
      killSignal: "SIGKILL",
      ...(env === undefined ? {} : { env: { ...process.env, ...env } }),
    });
    let output = "";
    const read = (text: string) => {
      output = (output + text).slice(-maxOutput);
    };
    child.stdout.setEncoding("utf8").on("data", read);
    child.stderr.setEncoding("utf8").on("data", read);
    child.once("error", reject);
    child.once("close", (code, killedBy) => {
      if (code === 0) resolve(output);
      else reject(new ProgramFailed(command, code === null ? `died of ${killedBy}` : `ended with ${code}`, output));
    });
    // A program that ends without reading its input reports the reason in its output.
    child.stdin.on("error", read.bind(undefined, ""));
    child.stdin.end(input ?? "");
  });
