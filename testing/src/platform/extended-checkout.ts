import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const checkout = join(import.meta.dirname, "..", "..", "..");
/** Parts of the checkout that no process of a platform needs. */
const unneeded = new Set([".git", "bench", "docs"]);

/** A line that an engine adds to a shared file, below the first line with this text. */
export interface RegistryLine {
  readonly file: string;
  readonly below: string;
  readonly line: string;
}

/** A copy of this checkout with an additional engine of the tests. */
export interface ExtendedCheckout {
  readonly directory: string;
  remove(): void;
}

/** Creates a copy of this checkout whose files are hard links, except for files that get additional lines. */
export function extendCheckout(lines: readonly RegistryLine[]): ExtendedCheckout {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-checkout-"));
  // Users of machines read the agent's code.
  chmodSync(directory, 0o755);
  for (const name of readdirSync(checkout)) {
    if (unneeded.has(name) || name.startsWith(".holdfast")) continue;
    copy(join(checkout, name), join(directory, name));
  }
  for (const { file, below, line } of lines) {
    const path = join(directory, file);
    const text = readFileSync(path, "utf8").split("\n");
    const index = text.findIndex((each) => each.includes(below));
    if (index < 0) throw new Error(`${file} has no line with ${below}`);
    text.splice(index + 1, 0, line);
    // A link must not be written to: its other name is in this checkout.
    rmSync(path);
    writeFileSync(path, text.join("\n"));
  }
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) };
}

/** Hard links need one file system. */
function copy(from: string, to: string): void {
  try {
    execFileSync("cp", ["--archive", "--link", from, to], { stdio: "ignore" });
  } catch {
    rmSync(to, { recursive: true, force: true });
    cpSync(from, to, { recursive: true, verbatimSymlinks: true });
  }
}
