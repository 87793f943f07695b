import { dirname } from "node:path";
import type { MachineGroups } from "../local/control-groups.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
import { codeInside, type Place } from "../local/place.ts";

/** What a machine sees of its host. */
export interface MachineRoot {
  readonly paths: MachinePaths;
  /** Root of the node image. */
  readonly image: string;
  readonly place: Place;
  readonly disk: "loop" | "directory";
  /** Is there a passwd file of its own? */
  readonly hasUser: boolean;
  /** Keeper and agent as they were made for machines (machine-code.ts); undefined when they run as they are in the checkout. */
  readonly code: { readonly directory: string; readonly writable: boolean } | undefined;
  /** Its control groups, for reading: what they have counted. */
  readonly groups: MachineGroups | undefined;
}

const devices = ["null", "zero", "full", "random", "urandom"];

/** The mounts of a machine in the format of fstab(5), in order; targets are below its root. */
export function mountTable(root: MachineRoot): string {
  const { paths, place } = root;
  // Repeats what the host's own mount may forbid: in a user namespace a bind cannot take that back.
  const readOnly = "bind,ro,nosuid,nodev";
  const disk: Row =
    root.disk === "loop"
      ? [paths.diskFile, "/data", "xfs", "loop,noatime,nosuid,nodev"]
      : [paths.dataDirectory, "/data", "none", "bind"];
  const rows: Row[] = [
    [`${root.image}/usr`, "/usr", "none", readOnly],
    [`${root.image}/etc`, "/etc", "none", readOnly],
    [place.checkout, "/holdfast/checkout", "none", readOnly],
    [dirname(place.node), "/holdfast/node", "none", readOnly],
    // The image names no resolvers: whom to ask for names is the host's to say.
    [paths.resolvers, "/etc/resolv.conf", "none", readOnly],
    [paths.state, "/var/lib/holdfast", "none", "bind"],
    disk,
    ["proc", "/proc", "proc", "nosuid,nodev,noexec"],
    ...devices.map((device): Row => [`/dev/${device}`, `/dev/${device}`, "none", "bind"]),
  ];
  if (root.code !== undefined)
    rows.push([root.code.directory, codeInside, "none", root.code.writable ? "bind,nosuid,nodev" : readOnly]);
  for (const [directory, target] of root.groups?.mounts ?? []) rows.push([directory, target, "none", readOnly]);
  // Engines want a name for the user that they run as.
  if (root.hasUser) rows.push([paths.passwd, "/etc/passwd", "none", "bind,ro"]);
  if (place.hidden !== undefined) rows.push(["hidden", `/holdfast/checkout/${place.hidden}`, "tmpfs", "ro,mode=0"]);
  return rows.map((row) => `${row.map(escaped).join(" ")} 0 0\n`).join("");
}

type Row = readonly [source: string, target: string, type: string, options: string];

function escaped(field: string): string {
  return field.replaceAll(/[\\ \t\n#]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);
}
