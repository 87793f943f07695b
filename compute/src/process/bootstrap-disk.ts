import type { Log } from "@holdfast/common/log.ts";
import { readIfThere } from "../local/atomic-file.ts";
import type { Place } from "../local/place.ts";
import type { Bootstrap } from "../local/spares.ts";
import { runMachineProgram } from "./machine-program.ts";
import { stopMachine } from "./stop-machine.ts";

/** Fills data disks out of the image in a machine of their own, which any host with namespaces can have. */
export function createBootstrap(deps: {
  readonly place: Place;
  readonly prepare: Bootstrap["prepare"];
  readonly log: Log;
}): Bootstrap {
  const { place, prepare, log } = deps;
  const { isolation } = place.abilities;
  return {
    possible: isolation !== "none",
    prepare,
    async run({ kind, paths, disk, uid, imageRoot }, signal) {
      const root = { paths, image: imageRoot, place, disk, hasUser: uid !== null, code: undefined, groups: undefined };
      const command = [...asUser(uid), ...kind.command];
      const status = await runMachineProgram({ paths, isolation, root, uid, command }, signal, log);
      if (status !== 0) throw new Error(`bootstrap of a spare ended with ${status}: ${await readIfThere(paths.log)}`);
    },
    end: (paths) => stopMachine(paths, 0),
  };
}

/** Programs of an engine run as the machine's user; without root as one that is not root in a namespace of its own. */
function asUser(uid: number | null): string[] {
  if (uid === null) return ["unshare", "--user", "--map-user=65534", "--map-group=65534"];
  return ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--no-new-privs"];
}
