import { join } from "node:path";
import { limitMachine } from "../local/control-groups.ts";
import { agentUidOf } from "../local/machine-number.ts";
import type { Layout } from "../local/machine-paths.ts";
import { type MachineRecord, writeRecord } from "../local/machine-record.ts";
import type { NodeImages } from "../local/node-images.ts";
import { codeInside, directoriesOf, init, type Inside, insideOf, leastInit, type Place } from "../local/place.ts";
import { bootId } from "../local/process-identity.ts";
import type { MachineCode } from "./machine-code.ts";
import { launchMachine } from "./machine-launch.ts";
import { stopMachine } from "./stop-machine.ts";

export interface MachineStartDeps {
  readonly layout: Layout;
  readonly place: Place;
  readonly images: Pick<NodeImages, "require">;
  readonly code: Pick<MachineCode, "openTo">;
  /** For engines installed on the host: PATH. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** First program of a machine; the keeper when absent. */
  readonly command?: (inside: Inside) => readonly string[];
}

/** Whom the keeper makes of itself for what it starts, when a machine has no user of its own. */
const nobody = 65_534;

/** Makes what starts the machine of a record once more, from its image, and counts the start in the record. */
export function createMachineStart({ layout, place, images, code, environment, ...deps }: MachineStartDeps) {
  const { groups: groupAbility, isolation } = place.abilities;
  const inside = insideOf(place);
  const command = deps.command?.(inside);
  const keeperIn = (madeCode: string | undefined) =>
    madeCode === undefined ? join(inside.checkout, "agent", "keeper", "main.ts") : join(codeInside, "keeper.mjs");

  return async (id: string, before: MachineRecord): Promise<void> => {
    const paths = layout.machine(id);
    const { engine, version } = before.spec;
    const image = images.require({ engine, version, ...(before.image !== undefined && { image: before.image }) });
    // What a run that was killed left, such as its loop device, goes first.
    await stopMachine(paths, 0);
    const record = { ...before, image: image?.id ?? "", starts: before.starts + 1 };
    await writeRecord(paths.record, record);
    const { uid, address } = record;
    const hasUser = uid !== null;
    const made = image === undefined ? undefined : await code.openTo(uid === null ? nobody : agentUidOf(uid));
    const madeCode = made === undefined ? undefined : { directory: made, writable: false };
    const groups = await limitMachine(groupAbility, id, record.spec.plan);
    await launchMachine({
      paths,
      isolation,
      root: image && { paths, image: image.root, place, disk: record.disk, hasUser, code: madeCode, groups },
      uid,
      grow: record.formattedBytes < record.diskBytes,
      command: command ?? [
        ...(image === undefined ? [] : uid === null ? init : leastInit),
        inside.node,
        "--max-semi-space-size=1",
        keeperIn(made),
      ],
      env: {
        PATH: isolation === "none" ? (environment["PATH"] ?? "/usr/bin") : "/usr/sbin:/usr/bin",
        LANG: "C.UTF-8",
        HOLDFAST_MACHINE_ID: id,
        HOLDFAST_MACHINE_START: `${bootId()}-${record.starts}`,
        HOLDFAST_ADDRESS: address,
        HOLDFAST_ENGINE: record.spec.engine,
        ...(uid !== null && { HOLDFAST_MACHINE_UID: String(uid), HOLDFAST_AGENT_UID: String(agentUidOf(uid)) }),
        ...(made !== undefined && {
          HOLDFAST_AGENT_MAIN: join(codeInside, "main.mjs"),
          NODE_COMPILE_CACHE: join(codeInside, "compile-cache"),
        }),
        ...directoriesOf(place, paths, layout.sockets(record.number)),
      },
    });
    if (record.formattedBytes < record.diskBytes)
      await writeRecord(paths.record, { ...record, formattedBytes: record.diskBytes });
  };
}
