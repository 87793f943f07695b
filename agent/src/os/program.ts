import { spawn } from "node:child_process";

/** Runs a program of an engine, such as initdb, to its end; throws ProgramFailed unless it ends well. */
export type RunProgram = (argv: readonly string[], options: RunOptions) => Promise<string>;

export interface RunOptions {
  /** Written to its standard input. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** A program of the engine failed; the message ends with the last lines of its output. */
export class ProgramFailed extends Error {
  override readonly name = "ProgramFailed";
  readonly output: string;

  constructor(program: string, how: string, output: string) {
    super(`${program} ${how}: ${output.trim().split("\n").slice(-5).join(" | ")}`);
    this.output = output;
  }
}

const most = 1_000_000;

/** Resolves with what it printed to both outputs. */
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
      output = (output + text).slice(-most);
    };
    child.stdout.setEncoding("utf8").on("data", read);
    child.stderr.setEncoding("utf8").on("data", read);
    child.once("error", reject);
    child.once("close", (code, killedBy) => {
      if (code === 0) resolve(output);
      else reject(new ProgramFailed(command, code === null ? `died of ${killedBy}` : `ended with ${code}`, output));
    });
    // A program that ends without reading says why in its output.
    child.stdin.on("error", read.bind(undefined, ""));
    child.stdin.end(input ?? "");
  });
