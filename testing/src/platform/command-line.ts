import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "@holdfast/cli/run.ts";

/** Result of a command. */
export interface CommandResult {
  /** 128 plus the signal's number for a command that a signal ended. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running command. */
export interface RunningCommand {
  readonly child: ChildProcess;
  readonly ended: Promise<CommandResult>;
  /** Output of the command so far, on both streams. */
  written(): string;
  /** Types on the command's standard input. */
  type(text: string): void;
}

export interface RunOptions {
  /** Standard input; empty when absent. */
  readonly input?: string;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Runs the command on a new terminal of 120 columns; both outputs are then one. */
  readonly onTerminal?: boolean;
}

/** The `holdfast` command as in a user's shell, with a separate home directory. */
export interface CommandLine {
  /** Runs the command within this process, which is quicker; lines of the input answer its prompts. */
  runHere(args: readonly string[], options?: RunOptions): Promise<CommandResult>;
  readonly home: string;
  /** Directory for temporary files of the command. */
  readonly temporary: string;
  run(args: readonly string[], options?: RunOptions): Promise<CommandResult>;
  start(args: readonly string[], options?: RunOptions): RunningCommand;
  remove(): void;
}

const launcher = join(import.meta.dirname, "..", "..", "..", "bin", "holdfast.js");

/** `environment`: variables in addition to those that a shell needs. */
export function createCommandLine(environment: Readonly<Record<string, string>>): CommandLine {
  const home = mkdtempSync(join(tmpdir(), "holdfast-home-"));
  const temporary = join(home, "tmp");
  mkdirSync(temporary);
  const inherited = ["PATH", "HOLDFAST_CACHE", "NODE_COMPILE_CACHE"].map((name) => [name, process.env[name]]);
  // The node image with the engines' clients is found below the real home.
  const cache = process.env.HOLDFAST_CACHE ?? join(process.env.HOME ?? "/root", ".cache", "holdfast");
  const variables = { HOME: home, TMPDIR: temporary, TERM: "xterm", HOLDFAST_CACHE: cache };

  function start(args: readonly string[], options: RunOptions = {}): RunningCommand {
    const words = [process.execPath, launcher, ...args];
    const [command = "", ...rest] =
      options.onTerminal === true
        ? ["script", "-qefc", `stty cols 120; exec ${words.map(quoted).join(" ")}`, "/dev/null"]
        : words;
    const env = { ...Object.fromEntries(inherited), ...variables, ...environment, ...options.environment };
    const child = spawn(command, rest, { env, cwd: home, stdio: "pipe" });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text) => (stderr += text));
    // A command that needs no input may exit before it is written.
    child.stdin.on("error", () => undefined);
    if (options.onTerminal !== true) child.stdin.end(options.input);
    return {
      child,
      ended: new Promise((resolve, reject) => {
        child.once("error", reject);
        child.once("close", (code) => resolve({ code, stdout, stderr }));
      }),
      written: () => stdout + stderr,
      type: (text) => void child.stdin.write(text),
    };
  }

  async function runHere(args: readonly string[], options: RunOptions = {}): Promise<CommandResult> {
    let stdout = "";
    let stderr = "";
    const lines = (options.input ?? "").split("\n");
    const nextLine = async (question: string) => lines.shift() ?? `nothing for ${question}`;
    const code = await runCli(args, {
      environment: { ...Object.fromEntries(inherited), ...variables, ...environment, ...options.environment },
      defaultDirectory: join(home, ".holdfast"),
      signal: new AbortController().signal,
      stdout: { write: (text) => (stdout += text) },
      stderr: { write: (text) => (stderr += text) },
      terminal: {
        isInteractive: false,
        ask: nextLine,
        askSecret: nextLine,
        readAll: async () => Buffer.from(lines.splice(0).join("\n")),
        confirm: async () => false,
      },
    });
    return { code, stdout, stderr };
  }

  return {
    home,
    temporary,
    runHere,
    start,
    run: (args, options) => start(args, options).ended,
    remove: () => rmSync(home, { recursive: true, force: true }),
  };
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
