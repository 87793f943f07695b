import { join } from "node:path";
import { namesIn } from "./atomic-file.ts";

/** Mount point of the data disk inside a machine. */
export const machineDataDirectory = "/data";

/** Paths of one machine on its host. */
export interface MachinePaths {
  readonly directory: string;
  /** The machine's record; written last at creation, removed first at destruction. */
  readonly record: string;
  /** State of the agent: enrollment, journal, keys, logs. Mounted at /var/lib/holdfast inside. */
  readonly state: string;
  /** The data disk: a sparse file, or a directory if there are no loop devices. */
  readonly diskFile: string;
  readonly dataDirectory: string;
  /** A prepared disk that was taken and not yet moved to the machine's disk. */
  readonly preparedDisk: string;
  /** Pipe that the running machine has open (launch-machine.sh). */
  readonly alive: string;
  /** Mount point of the machine's root, in its own mount namespace. */
  readonly root: string;
  readonly mounts: string;
  readonly passwd: string;
  /** resolv.conf(5) of the host, for the machine. */
  readonly resolvers: string;
  readonly log: string;
  /** Identity of the machine's process. Outside of the machine's directory, so that one watch sees every start. */
  readonly run: string;
}

/** Directories of a provider. */
export interface Layout {
  readonly directory: string;
  readonly machines: string;
  readonly running: string;
  readonly addresses: string;
  readonly publicAddresses: string;
  readonly preparedDisks: string;
  readonly code: string;
  machine(id: string): MachinePaths;
  /** Socket directory of a machine that uses the host's root, by its number: a socket path has at most 107 bytes. */
  sockets(number: number): string;
}

/** Layout of the provider's directory. */
export function layoutOf(directory: string): Layout {
  const machines = join(directory, "machines");
  const running = join(directory, "running");
  return {
    directory,
    machines,
    running,
    addresses: join(directory, "addresses"),
    publicAddresses: join(directory, "public-addresses"),
    preparedDisks: join(directory, "spares"),
    code: join(directory, "code"),
    sockets: (number) => join(directory, "sockets", String(number)),
    machine: (id) => machinePaths(join(machines, id), join(running, id)),
  };
}

/** Paths of a directory in the layout of a machine; prepared disks are created in one. */
export function machinePaths(directory: string, run: string): MachinePaths {
  return {
    directory,
    record: join(directory, "machine.json"),
    state: join(directory, "state"),
    diskFile: join(directory, "disk.img"),
    dataDirectory: join(directory, "data"),
    preparedDisk: join(directory, "spare"),
    alive: join(directory, "alive"),
    root: join(directory, "root"),
    mounts: join(directory, "mounts"),
    passwd: join(directory, "passwd"),
    resolvers: join(directory, "resolv.conf"),
    log: join(directory, "keeper.log"),
    run,
  };
}

const unfinishedPrefix = "making-";

/** Paths of an unfinished prepared disk, in the layout of a machine, in the directory of its kind. */
export function unfinishedPaths(kindDirectory: string, number: number): MachinePaths {
  return unfinishedPathsOf(kindDirectory, `${unfinishedPrefix}${number}`);
}

/** Prepared disks of one kind that are being created, or that a killed process left unfinished. */
export async function unfinishedOf(kindDirectory: string): Promise<MachinePaths[]> {
  const names = await namesIn(kindDirectory);
  return names
    .filter((name) => name.startsWith(unfinishedPrefix))
    .map((name) => unfinishedPathsOf(kindDirectory, name));
}

/** Unfinished disks of every kind. */
export async function unfinishedIn(preparedDirectory: string): Promise<MachinePaths[]> {
  const kinds = await namesIn(preparedDirectory);
  return (await Promise.all(kinds.map((kind) => unfinishedOf(join(preparedDirectory, kind))))).flat();
}

function unfinishedPathsOf(kindDirectory: string, name: string): MachinePaths {
  const directory = join(kindDirectory, name);
  return machinePaths(directory, join(directory, "run"));
}
