import { spawn } from "node:child_process";
import { type Launch, programPid } from "@holdfast/image/in-image.ts";

/** A program that runs for a test. Linux kills it when the test's process ends, for any reason. */
export interface TemporaryProcess {
  /** The host's pid of the program. */
  readonly pid: number;
  /** Sends the program a signal. */
  signal(signal: NodeJS.Signals): void;
  /** Sends the signal to the program and resolves when no process of it remains. */
  end(signal: NodeJS.Signals): Promise<void>;
}

/** Spawns a program and resolves once it printed `ready`; throws with its last output if it ends before. */
export async function startTemporaryProcess(launch: Launch, ready: RegExp): Promise<TemporaryProcess> {
  const child = spawn(launch.command, launch.args, { stdio: ["ignore", "pipe", "pipe"], cwd: "/" });
  let output = "";
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  await new Promise<void>((resolve, reject) => {
    const read = (text: string) => {
      output = (output + text).slice(-8_000);
      if (ready.test(output)) resolve();
    };
    child.stdout.setEncoding("utf8").on("data", read);
    child.stderr.setEncoding("utf8").on("data", read);
    child.once("error", reject);
    void ended.then(() => reject(new Error(`${launch.args.join(" ")} ended early:\n${output}`)));
  });
  const pid = programPid(child.pid ?? 0) ?? 0;
  const signal = (name: NodeJS.Signals) => {
    if (pid > 0 && child.exitCode === null && child.signalCode === null) process.kill(pid, name);
  };
  return {
    pid,
    signal,
    async end(name) {
      signal(name);
      await ended;
    },
  };
}
