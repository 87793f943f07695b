import type { Log } from "@holdfast/common/log.ts";
import { readIfExists } from "../local/atomic-file.ts";
import type { MachineRuntime } from "../local/machine-runtime.ts";
import type { Bootstrap } from "../local/prepared-disks.ts";
import { runMachineProgram } from "./machine-launch.ts";
import { stopMachine } from "./stop-machine.ts";

/** Bootstraps data disks by a machine that runs one program of the image, on any host with namespaces. */
export function createBootstrap(deps: {
  readonly runtime: MachineRuntime;
  readonly prepare: Bootstrap["prepare"];
  readonly log: Log;
}): Bootstrap {
  const { runtime, prepare, log } = deps;
  const { isolation } = runtime.abilities;
  return {
    possible: isolation !== "none",
    prepare,
    async run({ kind, paths, disk, uid, imageRoot }, signal) {
      const root = {
        paths,
        image: imageRoot,
        runtime,
        disk,
        hasUser: uid !== null,
        code: undefined,
        groups: undefined,
      };
      const command = [...asUser(uid), ...kind.command];
      const status = await runMachineProgram({ paths, isolation, root, uid, command }, signal, log);
      if (status !== 0)
        throw new Error(`bootstrap of a data disk ended with ${status}: ${await readIfExists(paths.log)}`);
    },
    end: (paths) => stopMachine(paths, 0),
  };
}

/** Runs engine programs as the machine's user; without root, as a user other than root in a user namespace. */
function asUser(uid: number | null): string[] {
  if (uid === null) return ["unshare", "--user", "--map-user=65534", "--map-group=65534"];
  return ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--no-new-privs"];
}
