import { chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { type DataPlaneName, dataPlaneNames, eachDataPlane } from "@holdfast/common/data-planes.ts";
import { localDataPlanes } from "./data-planes.ts";

/** Paths of one installation. Each data plane has a directory, by its name. */
export interface Layout extends Readonly<Record<DataPlaneName, string>> {
  readonly root: string;
  readonly admin: string;
  readonly installation: string;
  readonly keys: string;
  readonly pki: string;
  readonly etcd: string;
  readonly history: string;
  readonly objects: string;
  readonly machines: string;
  readonly preparedDisks: string;
  readonly log: string;
  readonly run: string;
  /** Trust bundle of the platform's authority, for clients. */
  readonly authority: string;
}

/** Layout of the data directory. */
export function layoutOf(root: string): Layout {
  const below = (name: string) => join(root, name);
  return {
    root,
    admin: below("admin.json"),
    installation: below("installation.json"),
    keys: below("keys"),
    pki: below("pki"),
    etcd: below("etcd"),
    history: below("history"),
    objects: below("objects"),
    machines: below("machines"),
    preparedDisks: below("spares"),
    ...eachDataPlane(below),
    log: below("log"),
    run: below("run"),
    authority: below("ca.pem"),
  };
}

/** Creates the directories. `chownTo` assigns directories of programs with another user to that user. */
export function makeDirectories(layout: Layout): void {
  const { root, keys, pki, etcd, history, objects, machines, preparedDisks, log, run } = layout;
  // Other users pass through to their machines below; secret directories have their own mode.
  mkdirSync(root, { recursive: true, mode: 0o755 });
  for (const directory of [machines, preparedDisks, run, pki]) mkdirSync(directory, { recursive: true });
  for (const directory of [keys, etcd, history, objects, log]) mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const name of dataPlaneNames)
    mkdirSync(layout[name], { recursive: true, mode: localDataPlanes[name].hasPublicDirectory ? 0o755 : 0o700 });
}

/** Creates the directories of a host without controllers. */
export function makeHostDirectories({ root, keys, machines, preparedDisks, log, run }: Layout): void {
  mkdirSync(root, { recursive: true, mode: 0o755 });
  for (const directory of [machines, preparedDisks, run]) mkdirSync(directory, { recursive: true });
  for (const directory of [keys, log]) mkdirSync(directory, { recursive: true, mode: 0o700 });
}

/** Assigns directories to a user, without their contents. */
export function chownTo(uid: number, directories: readonly string[]): void {
  for (const directory of directories) chownSync(directory, uid, uid);
}
