import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Files that only this user can read. */
export interface PrivateFiles {
  /** Writes one, mode 0600; resolves to its path. */
  write(name: string, text: string): string;
  remove(): void;
}

/** A new directory of mode 0700; it is removed with the process at the latest. */
export function createTemporaryFiles(): PrivateFiles {
  const files = filesIn(mkdtempSync(join(tmpdir(), "holdfast-connect-")));
  process.once("exit", files.remove);
  return {
    ...files,
    remove() {
      files.remove();
      process.off("exit", files.remove);
    },
  };
}

/** A directory that stays, for files that a printed command names. */
export function createLastingFiles(parent: string, name: string): PrivateFiles {
  const directory = join(parent, name);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  chmodSync(directory, 0o700);
  return filesIn(directory);
}

function filesIn(directory: string): PrivateFiles {
  return {
    write(name, text) {
      const path = join(directory, name);
      rmSync(path, { force: true });
      writeFileSync(path, text, { mode: 0o600 });
      return path;
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
