import { dirname } from "node:path";
import type { MachineGroups } from "../local/control-groups.ts";
import { machineDataDirectory, type MachinePaths } from "../local/machine-paths.ts";
import { machineCodeDirectory, type MachineRuntime } from "../local/machine-runtime.ts";

/** Inputs of a machine's root. */
export interface MachineRoot {
  readonly paths: MachinePaths;
  /** Root directory of the node image. */
  readonly image: string;
  readonly runtime: MachineRuntime;
  readonly disk: "loop" | "directory";
  /** True if the machine has a passwd file that replaces the image's. */
  readonly hasUser: boolean;
  /** Directory of the compiled keeper and agent (machine-code.ts); undefined if they run from the checkout. */
  readonly code: { readonly directory: string; readonly writable: boolean } | undefined;
  /** Control groups of the machine, mounted for reading their counters. */
  readonly groups: MachineGroups | undefined;
}

const devices = ["null", "zero", "full", "random", "urandom"];

/** Mounts of a machine in the format of fstab(5), in order; targets are below its root. */
export function mountTable(root: MachineRoot): string {
  const { paths, runtime } = root;
  // Repeats the options of the host's mount: in a user namespace, a bind mount cannot drop them.
  const readOnly = "bind,ro,nosuid,nodev";
  const disk: Row =
    root.disk === "loop"
      ? [paths.diskFile, machineDataDirectory, "xfs", "loop,noatime,nosuid,nodev"]
      : [paths.dataDirectory, machineDataDirectory, "none", "bind"];
  const rows: Row[] = [
    [`${root.image}/usr`, "/usr", "none", readOnly],
    [`${root.image}/etc`, "/etc", "none", readOnly],
    [runtime.checkout, "/holdfast/checkout", "none", readOnly],
    [dirname(runtime.node), "/holdfast/node", "none", readOnly],
    // The image has no resolvers, so the machine uses the host's.
    [paths.resolvers, "/etc/resolv.conf", "none", readOnly],
    [paths.state, "/var/lib/holdfast", "none", "bind"],
    disk,
    ["proc", "/proc", "proc", "nosuid,nodev,noexec"],
    ...devices.map((device): Row => [`/dev/${device}`, `/dev/${device}`, "none", "bind"]),
  ];
  if (root.code !== undefined)
    rows.push([root.code.directory, machineCodeDirectory, "none", root.code.writable ? "bind,nosuid,nodev" : readOnly]);
  for (const [directory, target] of root.groups?.mounts ?? []) rows.push([directory, target, "none", readOnly]);
  // Engines need a passwd entry for their user.
  if (root.hasUser) rows.push([paths.passwd, "/etc/passwd", "none", "bind,ro"]);
  if (runtime.hidden !== undefined) rows.push(["hidden", `/holdfast/checkout/${runtime.hidden}`, "tmpfs", "ro,mode=0"]);
  return rows.map((row) => `${row.map(escaped).join(" ")} 0 0\n`).join("");
}

type Row = readonly [source: string, target: string, type: string, options: string];

function escaped(field: string): string {
  return field.replaceAll(/[\\ \t\n#]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);
}
