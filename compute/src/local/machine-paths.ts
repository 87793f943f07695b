import { join } from "node:path";

/** Where everything of one machine is. */
export interface MachinePaths {
  readonly directory: string;
  /** What the machine is; written last when it is made, removed first when it is destroyed. */
  readonly record: string;
  /** What the agent keeps: enrollment, journal, keys, logs. /var/lib/holdfast of the machine. */
  readonly state: string;
  /** The data disk as a sparse file, or as a directory where there is no loop device. */
  readonly diskFile: string;
  readonly dataDirectory: string;
  /** A spare that was taken and not yet unpacked. */
  readonly spare: string;
  /** Held open while it runs (launch-machine.sh). */
  readonly alive: string;
  /** Where its root is mounted, in its own namespace. */
  readonly root: string;
  readonly mounts: string;
  readonly passwd: string;
  /** What the host asks for names, as resolv.conf(5). */
  readonly resolvers: string;
  readonly log: string;
  /** Which process it is. Apart from the directory, so that one watch sees every start. */
  readonly run: string;
}

/** Directories of a provider below its own. */
export interface Layout {
  readonly directory: string;
  readonly machines: string;
  readonly running: string;
  readonly addresses: string;
  readonly publicAddresses: string;
  readonly spares: string;
  readonly code: string;
  machine(id: string): MachinePaths;
  /** Sockets of a machine that has no root of its own, by its number: a path of a socket has 107 bytes at most. */
  sockets(number: number): string;
}

/** Where everything is below the provider's directory. */
export function layoutOf(directory: string): Layout {
  const machines = join(directory, "machines");
  const running = join(directory, "running");
  return {
    directory,
    machines,
    running,
    addresses: join(directory, "addresses"),
    publicAddresses: join(directory, "public-addresses"),
    spares: join(directory, "spares"),
    code: join(directory, "code"),
    sockets: (number) => join(directory, "sockets", String(number)),
    machine: (id) => machinePaths(join(machines, id), join(running, id)),
  };
}

/** A directory with the shape of a machine; spares are made in one. */
export function machinePaths(directory: string, run: string): MachinePaths {
  return {
    directory,
    record: join(directory, "machine.json"),
    state: join(directory, "state"),
    diskFile: join(directory, "disk.img"),
    dataDirectory: join(directory, "data"),
    spare: join(directory, "spare"),
    alive: join(directory, "alive"),
    root: join(directory, "root"),
    mounts: join(directory, "mounts"),
    passwd: join(directory, "passwd"),
    resolvers: join(directory, "resolv.conf"),
    log: join(directory, "keeper.log"),
    run,
  };
}
