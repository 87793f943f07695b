import type { Log } from "@holdfast/common/log.ts";
import { readIfThere } from "../host/atomic-file.ts";
import type { Place } from "../host/place.ts";
import type { Bootstrap } from "../host/spares.ts";
import { launchMachine } from "./machine-launch.ts";
import { stopMachine } from "./stop-machine.ts";

/** Ready within this time, or something is wrong. */
const madeWithinMs = 120_000;

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
      const { ended } = await launchMachine({
        paths,
        isolation,
        root: { paths, image: imageRoot, place, disk, hasUser: uid !== null, code: undefined, groups: undefined },
        uid,
        grow: false,
        command: [...asUser(uid), ...kind.command],
        env: { PATH: "/usr/sbin:/usr/bin", LANG: "C.UTF-8", HOME: "/tmp" },
        awaited: true,
        // Only what nobody else wants of the CPUs and disks.
        prefix: ["chrt", "--idle", "0", "ionice", "--class", "3"],
      });
      const giveUp = AbortSignal.any([signal, AbortSignal.timeout(madeWithinMs)]);
      const stop = () => {
        stopMachine(paths, 0).catch((error: Error) => log.warn("spare not stopped", { error: error.message }));
      };
      giveUp.addEventListener("abort", stop, { once: true });
      const status = await ended;
      giveUp.removeEventListener("abort", stop);
      await stopMachine(paths, 0);
      giveUp.throwIfAborted();
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
