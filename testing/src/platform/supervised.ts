import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dyingWithParent } from "@holdfast/image/in-image.ts";
import { guardDirectory } from "./directory-guard.ts";
import { saveLogs, lastLogLines } from "./platform-logs.ts";
import { findProcesses, type PlatformProcesses } from "./platform-processes.ts";
import { GiveUp, waitUntil } from "../wait-until.ts";

/** A run of `npm start`, in a separate data directory. It ends with the test's process, for any reason. */
export interface Supervised {
  readonly directory: string;
  /** Output of the run since its start. */
  readonly output: string;
  processes(): PlatformProcesses;
  /** Runs `npm start -- ARGUMENTS` and resolves once `ready`; throws with its output if it ends before. */
  start(args: readonly string[], options: SupervisedStart): Promise<void>;
  /** Sends the supervisor the signal and resolves when it has ended; kills it after the grace period. */
  end(signal: NodeJS.Signals, graceMs?: number): Promise<void>;
  /** Runs `npm run clean` with the directory. */
  clean(): Promise<void>;
  /** Kills all processes that name the directory, and removes it. */
  remove(): Promise<void>;
}

interface SupervisedStart {
  readonly ready: () => Promise<boolean> | boolean;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Suites and benches call as fast as they can, with one credential. */
const unlimitedRates = {
  HOLDFAST_RATE_READS: "1000000",
  HOLDFAST_RATE_CHANGES: "1000000",
  HOLDFAST_RATE_MESSAGES: "1000000",
  HOLDFAST_RATE_SOURCE: "0",
  HOLDFAST_RATE_BYTES: "0",
  HOLDFAST_FOLLOWERS: "1000",
};

/** Default checkout whose code runs: the one of this file. */
const ownCheckout = join(import.meta.dirname, "..", "..", "..");

/**
 * A run that is not started yet. Its directory is a new one of this name below the temporary directory, or the given
 * one. `enter` is the prefix of its command lines, `checkout` the directory of its code.
 */
export function newSupervised(
  name: string,
  given?: string,
  enter: readonly string[] = [],
  checkout = ownCheckout,
): Supervised {
  const entry = join(checkout, "local", "src", "main.ts");
  const directory = given ?? mkdtempSync(join(tmpdir(), `holdfast-${name}-`));
  const guard = guardDirectory(directory);
  let supervisor: ChildProcess | undefined;
  let output = "";
  const hasEnded = () => supervisor === undefined || supervisor.exitCode !== null || supervisor.signalCode !== null;

  return {
    directory,
    get output() {
      return output;
    },
    processes: () => findProcesses(directory, hasEnded() ? undefined : supervisor?.pid),
    async start(args, { ready, environment = {} }) {
      output = "";
      const launch = dyingWithParent([...enter, process.execPath, entry, ...args, "--data", directory]);
      const child = spawn(launch.command, launch.args, {
        env: { ...childEnvironment(), ...unlimitedRates, ...environment },
        stdio: ["ignore", "pipe", "pipe"],
        // The tests handle SIGINT at their own terminal, in order.
        detached: true,
      });
      supervisor = child;
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => {
          output = (output + text).slice(-20_000);
        });
      }
      const describe = () => `its output:\n${output}\n${lastLogLines(directory, 15)}`;
      const check = () => {
        if (!hasEnded()) return ready();
        throw new GiveUp(`${args[0]} ended with ${child.signalCode ?? child.exitCode}; ${describe()}`);
      };
      await waitUntil(`npm start -- ${args.join(" ")} serves`, check, { withinMs: 150_000, describe });
    },
    async end(signal, graceMs) {
      const child = supervisor;
      if (child === undefined || hasEnded()) return;
      const ended = new Promise((resolve) => child.once("close", resolve));
      child.kill(signal);
      const force = graceMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), graceMs);
      await ended;
      clearTimeout(force);
    },
    async clean() {
      const [command, ...args] = [...enter, process.execPath, entry, "clean", "--yes", "--data", directory];
      const child = spawn(command, args, { env: childEnvironment(), stdio: "ignore" });
      await new Promise((resolve) => child.once("close", resolve));
    },
    remove() {
      saveLogs(directory);
      return guard.end();
    },
  };
}

/** The test runner's own settings must not reach the platform. */
function childEnvironment(): Record<string, string> {
  const inherited = ["PATH", "HOME", "LANG", "TMPDIR", "HOLDFAST_CACHE", "NODE_COMPILE_CACHE"];
  return Object.fromEntries(
    inherited.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name] ?? ""]])),
  );
}
