import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dyingWithParent } from "@holdfast/image/in-image.ts";
import { guardDirectory } from "./directory-guard.ts";
import { childEnvironment, entry } from "./platform.ts";
import { lastLogLines } from "./platform-logs.ts";
import { argumentsAndEnvironment, findProcesses, type PlatformProcesses } from "./platform-processes.ts";
import { GiveUp, waitUntil } from "./wait-until.ts";

/** A host without controllers, run as `npm start -- host` runs it, with data of its own. */
export interface SecondHost {
  readonly directory: string;
  /** All that it has said since it was started. */
  readonly output: string;
  processes(): PlatformProcesses;
  /** Pid of the program that controllers dial; undefined while it is down. */
  program(): number | undefined;
  /** Starts it, with the text of a join file if there is one; resolves when it serves. */
  start(joinFile?: string): Promise<void>;
  /** Ctrl-C; its machines stop too. */
  stop(): Promise<void>;
  /** Stops it and removes its data. */
  remove(): Promise<void>;
}

/** Not started yet. It ends with the test's process, whatever ends that. */
export function newSecondHost(): SecondHost {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-second-"));
  const guard = guardDirectory(directory);
  let supervisor: ChildProcess | undefined;
  let output = "";
  const isGone = () => supervisor === undefined || supervisor.exitCode !== null || supervisor.signalCode !== null;
  const runs = (pid: number) => argumentsAndEnvironment(pid);

  async function stop(): Promise<void> {
    const child = supervisor;
    if (child === undefined || isGone()) return;
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGINT");
    const force = setTimeout(() => child.kill("SIGKILL"), 40_000);
    await ended;
    clearTimeout(force);
  }

  return {
    directory,
    get output() {
      return output;
    },
    processes: () => findProcesses(directory, isGone() ? undefined : supervisor?.pid),
    program: () =>
      readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .map(Number)
        .find((pid) => {
          const { cmdline, environ } = runs(pid);
          const isProgram = /(^|\/)node$/.test(cmdline.split("\0")[0] ?? "") && cmdline.includes("host/src/main.ts");
          return isProgram && environ.includes(`HOLDFAST_PROCESS_DIR=${directory}`);
        }),
    async start(joinFile) {
      output = "";
      const flags: string[] = [];
      if (joinFile !== undefined) {
        const path = join(directory, "join.json");
        writeFileSync(path, joinFile, { mode: 0o600 });
        flags.push("--join", path);
      }
      const launch = dyingWithParent([process.execPath, entry, "host", "--data", directory, ...flags]);
      const child = spawn(launch.command, launch.args, {
        env: childEnvironment(),
        stdio: ["ignore", "pipe", "pipe"],
        detached: true,
      });
      supervisor = child;
      const read = (text: string) => {
        output = (output + text).slice(-20_000);
      };
      child.stdout.setEncoding("utf8").on("data", read);
      child.stderr.setEncoding("utf8").on("data", read);
      const describe = () => `its output:\n${output}\n${lastLogLines(directory, 15)}`;
      await waitUntil(
        "the host serves",
        () => {
          if (isGone()) throw new GiveUp(`the host ended; ${describe()}`);
          return output.includes(" serves at ");
        },
        { describe },
      );
    },
    stop,
    async remove() {
      await stop();
      await guard.end();
    },
  };
}
