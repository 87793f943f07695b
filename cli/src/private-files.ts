import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Files with mode 0600 in one directory. */
export interface PrivateFiles {
  /** Writes a file and returns its path. */
  write(name: string, text: string): string;
  remove(): void;
}

/** A new temporary directory of mode 0700, which is removed at process exit at the latest. */
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

/** A permanent directory, for files that a printed connection string names. */
export function createPermanentFiles(parent: string, name: string): PrivateFiles {
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
