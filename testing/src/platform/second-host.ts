import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { argumentsAndEnvironment, type PlatformProcesses } from "./platform-processes.ts";
import { newSupervised } from "./supervised.ts";

/** A host without controllers, run as `npm start -- host` runs it, with a separate data directory. */
export interface SecondHost {
  readonly directory: string;
  /** Output of the host's program since its start. */
  readonly output: string;
  processes(): PlatformProcesses;
  /** Pid of the program that controllers dial; undefined while it is down. */
  program(): number | undefined;
  /** Starts the host, with the text of a join file if there is one, and additional flags; resolves when it serves. */
  start(joinFile?: string, further?: readonly string[], environment?: Readonly<Record<string, string>>): Promise<void>;
  /** Sends SIGINT; the host's machines stop too. */
  stop(): Promise<void>;
  /** Stops the host program and reverts its changes outside of its directory. */
  clean(): Promise<void>;
  /** Stops the host program and removes its data. */
  remove(): Promise<void>;
}

/**
 * A host that is not started yet. It ends with the test's process, for any reason. `enter` is the prefix of its command
 * lines, `checkout` the directory of its code.
 */
export function newSecondHost(enter: readonly string[] = [], checkout?: string): SecondHost {
  const supervised = newSupervised("second", undefined, enter, checkout);
  const { directory, processes } = supervised;
  const stop = () => supervised.end("SIGINT", 40_000);

  return {
    directory,
    get output() {
      return supervised.output;
    },
    processes,
    program: () =>
      readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .map(Number)
        .find((pid) => {
          const { cmdline, environ } = argumentsAndEnvironment(pid);
          const isProgram =
            /(^|\/)node$/.test(cmdline.split("\0")[0] ?? "") && /\/host(\/src\/main\.ts|\.mjs)\0?$/.test(cmdline);
          return isProgram && environ.includes(`HOLDFAST_PROCESS_DIR=${directory}`);
        }),
    async start(joinFile, further = [], environment = {}) {
      const flags = [...further];
      if (joinFile !== undefined) {
        const path = join(directory, "join.json");
        writeFileSync(path, joinFile, { mode: 0o600 });
        flags.push("--join", path);
      }
      await supervised.start(["host", ...flags], {
        ready: () => supervised.output.includes(" serves at "),
        environment,
      });
    },
    stop,
    async clean() {
      await stop();
      await supervised.clean();
    },
    async remove() {
      await stop();
      await supervised.remove();
    },
  };
}
