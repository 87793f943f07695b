import { join } from "node:path";
import { appProgram } from "@holdfast/image/catalog.ts";
import { limitMachine } from "../local/control-groups.ts";
import { agentUidOf } from "../local/machine-number.ts";
import type { Layout } from "../local/machine-paths.ts";
import { type MachineRecord, writeRecord } from "../local/machine-record.ts";
import type { NodeImages } from "../local/node-images.ts";
import {
  machineCodeDirectory,
  directoryVariables,
  initCommand,
  type RuntimePaths,
  runtimePathsOf,
  restrictedInitCommand,
  type MachineRuntime,
} from "../local/machine-runtime.ts";
import { bootId } from "../local/process-identity.ts";
import type { MachineCode } from "./machine-code.ts";
import { launchMachine } from "./machine-launch.ts";
import { stopMachine } from "./stop-machine.ts";

export interface MachineStartDeps {
  readonly layout: Layout;
  readonly runtime: MachineRuntime;
  readonly images: Pick<NodeImages, "require">;
  readonly code: Pick<MachineCode, "openTo">;
  /** First user id of the containers of the machine with this number; null without one. */
  readonly containerUidOf: (number: number) => number | null;
  /** Environment of engines that the host has installed: PATH. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** First program of a machine; the keeper if absent. */
  readonly command?: (runtimePaths: RuntimePaths) => readonly string[];
}

/** User id of the keeper's children in a machine without a separate user. */
const nobody = 65_534;

/** Creates the function that starts a machine from its record and image, and counts the start in the record. */
export function createMachineStart({ layout, runtime, images, code, environment, ...deps }: MachineStartDeps) {
  const { containerUidOf } = deps;
  const { groups: groupAbility, isolation } = runtime.abilities;
  const runtimePaths = runtimePathsOf(runtime);
  const command = deps.command?.(runtimePaths);
  const keeperIn = (compiledCode: string | undefined) =>
    compiledCode === undefined
      ? join(runtimePaths.checkout, "agent", "keeper", "main.ts")
      : join(machineCodeDirectory, "keeper.mjs");

  return async (id: string, before: MachineRecord): Promise<void> => {
    const paths = layout.machine(id);
    const { engine, version } = before.spec;
    const image = images.require({ engine, version, ...(before.image !== undefined && { image: before.image }) });
    // Removes what a killed run left, such as its loop device.
    await stopMachine(paths, 0);
    const record = { ...before, image: image?.id ?? "", starts: before.starts + 1 };
    await writeRecord(paths.record, record);
    const { uid, address } = record;
    const hasUser = uid !== null;
    const containerUid = engine === appProgram && isolation === "root" ? containerUidOf(record.number) : null;
    const compiledDirectory =
      image === undefined ? undefined : await code.openTo(uid === null ? nobody : agentUidOf(uid));
    const compiledCode =
      compiledDirectory === undefined ? undefined : { directory: compiledDirectory, writable: false };
    const groups = await limitMachine(groupAbility, id, record.spec.plan);
    await launchMachine({
      paths,
      isolation,
      root: image && { paths, image: image.root, runtime, disk: record.disk, hasUser, code: compiledCode, groups },
      uid,
      hasContainers: containerUid !== null,
      grow: record.formattedBytes < record.diskBytes,
      command: command ?? [
        ...(image === undefined ? [] : uid === null ? initCommand : restrictedInitCommand),
        runtimePaths.node,
        "--max-semi-space-size=1",
        keeperIn(compiledDirectory),
      ],
      env: {
        PATH: isolation === "none" ? (environment["PATH"] ?? "/usr/bin") : "/usr/sbin:/usr/bin",
        LANG: "C.UTF-8",
        HOLDFAST_MACHINE_ID: id,
        HOLDFAST_MACHINE_START: `${bootId()}-${record.starts}`,
        HOLDFAST_ADDRESS: address,
        HOLDFAST_ENGINE: record.spec.engine,
        ...(uid !== null && { HOLDFAST_MACHINE_UID: String(uid), HOLDFAST_AGENT_UID: String(agentUidOf(uid)) }),
        ...(containerUid !== null && { HOLDFAST_CONTAINER_UID: String(containerUid) }),
        ...(compiledDirectory !== undefined && {
          HOLDFAST_AGENT_MAIN: join(machineCodeDirectory, "main.mjs"),
          NODE_COMPILE_CACHE: join(machineCodeDirectory, "compile-cache"),
        }),
        ...directoryVariables(runtime, paths, layout.sockets(record.number)),
      },
    });
    if (record.formattedBytes < record.diskBytes)
      await writeRecord(paths.record, { ...record, formattedBytes: record.diskBytes });
  };
}
