import { closeSync, constants, fchmodSync, fchownSync, fstatSync, mkdirSync, openSync } from "node:fs";

/**
 * A directory by descriptor, in which names are looked up whatever is renamed above it. The agent's user owns directories
 * that the keeper, as root, makes files in; a path through them can lead anywhere by a symbolic link.
 */
export interface KeptDirectory {
  readonly descriptor: number;
  /** Path of the directory itself, good until it is closed. */
  readonly path: string;
  /** Path of an entry; its last name is the only one that is looked up. */
  entry(name: string): string;
  close(): void;
}

/** User and group that something is given to. */
export interface Owner {
  readonly user: number;
  readonly group: number;
}

/** Opens the directory; throws for anything else of that name, a symbolic link to a directory among it. */
export function openDirectory(path: string): KeptDirectory {
  return keep(openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW));
}

/** The directory of this name in another one, made when it is missing; only one that was made here is given away. */
export function ensureDirectory(parent: KeptDirectory, name: string, owner: Owner | undefined): KeptDirectory {
  const path = parent.entry(name);
  const isNew = make(path);
  const directory = openDirectory(path);
  if (isNew && owner !== undefined) settle(directory, owner, undefined);
  return directory;
}

/** Gives the directory an owner and a mode, by its descriptor. */
export function settle({ descriptor }: KeptDirectory, owner: Owner | undefined, mode: number | undefined): void {
  if (mode !== undefined) fchmodSync(descriptor, mode);
  if (owner !== undefined) fchownSync(descriptor, owner.user, owner.group);
}

/**
 * Opens a file for appending, made with this mode when it is missing. One that is there has to be a regular file of the
 * owner's with no other name: anything else throws, for somebody else's file would be written to and given away.
 */
export function openForAppending(path: string, mode: number, owner: Owner | undefined): number {
  const { O_WRONLY, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
  const flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK;
  const made = openUnlessThere(path, flags | O_CREAT | O_EXCL, mode);
  const file = made ?? openSync(path, flags);
  try {
    if (made === undefined) requireOwn(file, owner);
    if (owner !== undefined) fchownSync(file, owner.user, owner.group);
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

function requireOwn(file: number, owner: Owner | undefined): void {
  const found = fstatSync(file);
  const { uid, nlink, size } = found;
  const self = process.getuid?.();
  // An empty one of this process is what a kill left between making it and giving it away.
  const isOwn = uid === (owner?.user ?? self) || (uid === self && size === 0);
  if (!found.isFile() || nlink !== 1 || !isOwn) throw new Error("the log's file is not the agent's own");
}

function openUnlessThere(path: string, flags: number, mode: number): number | undefined {
  try {
    return openSync(path, flags, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
    throw error;
  }
}

function keep(descriptor: number): KeptDirectory {
  const path = `/proc/self/fd/${descriptor}`;
  return { descriptor, path, entry: (name) => `${path}/${name}`, close: () => closeSync(descriptor) };
}

function make(path: string): boolean {
  try {
    mkdirSync(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}
