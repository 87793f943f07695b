import { chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";

/** Where everything of one installation is. */
export interface Layout {
  readonly root: string;
  readonly admin: string;
  readonly installation: string;
  readonly keys: string;
  readonly pki: string;
  readonly etcd: string;
  readonly history: string;
  readonly objects: string;
  readonly machines: string;
  readonly spares: string;
  readonly dns: string;
  /** What the sign-in of apps is served from, with the identity of the process. */
  readonly issuer: string;
  /** Identity of the process that serves the objects. */
  readonly store: string;
  /** Configuration, identity and journal of the inference proxy. */
  readonly inference: string;
  readonly log: string;
  readonly run: string;
  /** Trust bundle of the platform's authority, for clients. */
  readonly authority: string;
}

/** Where everything is below the data directory. */
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
    spares: below("spares"),
    dns: below("dns"),
    issuer: below("issuer"),
    store: below("store"),
    inference: below("inference"),
    log: below("log"),
    run: below("run"),
    authority: below("ca.pem"),
  };
}

/** Makes the directories. Those of programs that run as another user are given to it with `giveTo`. */
export function makeDirectories(layout: Layout): void {
  const { root, keys, pki, etcd, history, objects, machines, spares, dns, issuer, store, inference, log, run } = layout;
  // Machines of other users are below, so others may pass through; what is secret has its own mode.
  mkdirSync(root, { recursive: true, mode: 0o755 });
  for (const directory of [machines, spares, dns, run, pki]) mkdirSync(directory, { recursive: true });
  for (const directory of [keys, etcd, history, objects, issuer, store, inference, log])
    mkdirSync(directory, { recursive: true, mode: 0o700 });
}

/** Makes the directories that a host without controllers has. */
export function makeHostDirectories({ root, keys, machines, spares, log, run }: Layout): void {
  mkdirSync(root, { recursive: true, mode: 0o755 });
  for (const directory of [machines, spares, run]) mkdirSync(directory, { recursive: true });
  for (const directory of [keys, log]) mkdirSync(directory, { recursive: true, mode: 0o700 });
}

/** Makes a user the owner of directories, not of what is in them. */
export function giveTo(uid: number, directories: readonly string[]): void {
  for (const directory of directories) chownSync(directory, uid, uid);
}
