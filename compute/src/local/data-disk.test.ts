import { closeSync, openSync, readSync, statSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { hasCode } from "@holdfast/common/system-error.ts";
import { minDiskBytes, createDisk } from "./data-disk.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-disk-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const request = {
  kind: "loop",
  diskBytes: minDiskBytes,
  uid: null,
  imageRoot: undefined,
  tierDirectory: undefined,
} as const;

/** Size and first bytes of a disk; undefined if it does not exist. */
function headOf(path: string): readonly [size: number, magic: string] | undefined {
  try {
    const file = openSync(path, "r");
    const head = Buffer.alloc(4);
    readSync(file, head, 0, 4, 0);
    closeSync(file);
    return [statSync(path).size, head.toString("latin1")];
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

const locations = [
  ["beside its machine", false],
  ["in the directory of its storage tier", true],
] as const;

test.each(locations)(
  "a data disk %s has its name once it is formatted, and drafts of others go",
  async (_, isTiered) => {
    const paths = { diskFile: join(directory, "disk.img"), dataDirectory: join(directory, "data") };
    const tierDirectory = isTiered ? join(directory, "tier") : undefined;
    await writeFile(`${paths.diskFile}.of-a-killed-one.tmp`, "x");
    let isMade = false;
    const making = createDisk(paths, { ...request, tierDirectory }).finally(() => {
      isMade = true;
    });
    const seen = new Set<string>();
    for (; !isMade; await turn()) {
      const head = headOf(paths.diskFile);
      if (head !== undefined) seen.add(head.join(" "));
    }
    await making;
    expect(headOf(paths.diskFile)).toEqual([minDiskBytes, "XFSB"]);
    expect([...seen].filter((head) => head !== `${minDiskBytes} XFSB`)).toEqual([]);
    expect((await readdir(directory)).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  },
);
