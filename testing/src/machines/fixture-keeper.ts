import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";

/** Starts the real keeper, which starts the real agent, on a directory. The only engine is the fixture. */
export function startFixtureKeeper(directory: string): ChildProcess {
  return spawn(process.execPath, [join(import.meta.dirname, "../../../agent/keeper/main.ts")], {
    env: {
      PATH: process.env["PATH"],
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
      HOLDFAST_MACHINE_ID: "m-1",
      HOLDFAST_STATE_DIR: directory,
      HOLDFAST_RUN_DIR: join(directory, "run"),
      HOLDFAST_DATA_DIR: join(directory, "data"),
      HOLDFAST_AGENT_MAIN: join(import.meta.dirname, "fixture-agent.ts"),
    },
    stdio: "ignore",
  });
}
