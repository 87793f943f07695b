import { closeSync, constants, fchmodSync, fchownSync, fstatSync, mkdirSync, openSync } from "node:fs";

/**
 * An open directory. Names in it are resolved by its descriptor, so neither a renamed parent directory nor a symbolic
 * link redirects them: the agent's user owns directories in which the keeper, as root, creates files.
 */
export interface DirectoryHandle {
  readonly descriptor: number;
  /** Path of the directory itself; valid until it is closed. */
  readonly path: string;
  /** Path of an entry. Only its last name is resolved. */
  entry(name: string): string;
  close(): void;
}

/** New owner of a file. */
export interface FileOwner {
  readonly user: number;
  readonly group: number;
}

/** Opens the directory; throws for anything else under that name, including a symbolic link to a directory. */
export function openDirectory(path: string): DirectoryHandle {
  return handleOf(openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW));
}

/** Opens the subdirectory, created if it is missing. Only a directory created here gets the owner. */
export function ensureDirectory(parent: DirectoryHandle, name: string, owner: FileOwner | undefined): DirectoryHandle {
  const path = parent.entry(name);
  const isNew = create(path);
  const directory = openDirectory(path);
  if (isNew && owner !== undefined) setOwnership(directory, owner, undefined);
  return directory;
}

/** Sets the owner and mode of the directory by its descriptor. */
export function setOwnership(
  { descriptor }: DirectoryHandle,
  owner: FileOwner | undefined,
  mode: number | undefined,
): void {
  if (mode !== undefined) fchmodSync(descriptor, mode);
  if (owner !== undefined) fchownSync(descriptor, owner.user, owner.group);
}

/**
 * Opens a file for appending, created with this mode if it is missing. An existing one must be a regular file of the
 * owner with a single link, because another one would let the owner write to another user's file.
 */
export function openForAppending(path: string, mode: number, owner: FileOwner | undefined): number {
  const { O_WRONLY, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
  const flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK;
  const created = createExclusively(path, flags | O_CREAT | O_EXCL, mode);
  const file = created ?? openSync(path, flags);
  try {
    if (created === undefined) requireOwnFile(file, owner);
    if (owner !== undefined) fchownSync(file, owner.user, owner.group);
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

function requireOwnFile(file: number, owner: FileOwner | undefined): void {
  const found = fstatSync(file);
  const { uid, nlink, size } = found;
  const self = process.getuid?.();
  // An empty file of this process was created by a keeper that was killed before it set the owner.
  const isOwn = uid === (owner?.user ?? self) || (uid === self && size === 0);
  if (!found.isFile() || nlink !== 1 || !isOwn) throw new Error("the log's file is not the agent's own");
}

/** Creates and opens a file; undefined if it exists. */
function createExclusively(path: string, flags: number, mode: number): number | undefined {
  try {
    return openSync(path, flags, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
    throw error;
  }
}

function handleOf(descriptor: number): DirectoryHandle {
  const path = `/proc/self/fd/${descriptor}`;
  return { descriptor, path, entry: (name) => `${path}/${name}`, close: () => closeSync(descriptor) };
}

function create(path: string): boolean {
  try {
    mkdirSync(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}
