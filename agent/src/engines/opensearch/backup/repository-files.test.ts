import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runProgram } from "../../../os/program.ts";
import { localFiles } from "../../spool-files/spool-files.ts";
import { jsonFrame } from "../../json-frames.ts";
import { endOfRepository, fileFrames, restartOfRepository, writeRepository } from "./repository-files.ts";
import { createSpool } from "./spool.ts";

let root: string;
let copy: string;
beforeEach(() => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-opensearch-"));
  [root, copy] = [join(directory, "source"), join(directory, "copy")];
  mkdirSync(join(root, "indices/abc/0"), { recursive: true });
});
afterEach(() => rmSync(join(root, ".."), { recursive: true }));

const signal = new AbortController().signal;
const data = "indices/abc/0/__data";

async function collected(frames: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const found: Buffer[] = [];
  for await (const bytes of frames) found.push(Buffer.from(bytes));
  return found;
}

async function restore(...frames: readonly Buffer[]): Promise<void> {
  async function* stream() {
    // Chunks do not end where frames do.
    const all = Buffer.concat(frames);
    for (let at = 0; at < all.length; at += 7_001) yield all.subarray(at, at + 7_001);
  }
  await writeRepository(copy, stream(), signal);
}

test("a file that grows while it is sent is complete in the copy, as are empty files", async () => {
  const spool = createSpool({ files: localFiles(async () => "", root), limitBytes: 2 ** 33, signal });
  writeFileSync(join(root, data), "a".repeat(1_500_000));
  writeFileSync(join(root, "indices/abc/0/__empty"), "");
  writeFileSync(join(root, "index-0"), "list");
  const sent = await collected(spool.sendData());
  appendFileSync(join(root, data), "b".repeat(2_000_000));
  sent.push(...(await collected(spool.sendData())));
  expect(await collected(spool.sendData())).toEqual([]);
  sent.push(...(await collected(spool.sendRest({ isLeader: true }))));
  await restore(...sent, endOfRepository());
  expect(readFileSync(join(copy, data)).equals(readFileSync(join(root, data)))).toBe(true);
  expect(readFileSync(join(copy, "index-0"), "utf8")).toBe("list");
  expect(existsSync(join(copy, "indices/abc/0/__empty"))).toBe(true);
});

test("bytes that were sent are removed from the disk once they exceed their limit", async () => {
  const files = localFiles(runProgram, root);
  const spool = createSpool({ files, limitBytes: 8 << 20, signal });
  const size = async () => (await files.list(signal)).reduce((sum, { allocated }) => sum + allocated, 0);
  const other = join(root, "indices/abc/0/__other");
  writeFileSync(join(root, data), "a".repeat(400_000));
  await collected(spool.sendData());
  writeFileSync(other, "b".repeat(5_000_000));
  expect(await size()).toBeGreaterThanOrEqual(5_400_000);
  const sent: Buffer[] = [];
  const sizes: number[] = [];
  for await (const bytes of spool.sendData()) {
    sent.push(Buffer.from(bytes));
    sizes.push(await size());
  }
  // Also of a file that is still being read.
  expect(sizes.at(-1)).toBeLessThan(4_000_000);
  expect(await size()).toBeLessThan(2_000_000);
  // The engine continues at the end of the file.
  appendFileSync(other, "c");
  expect(statSync(other).size).toBe(5_000_001);
  sent.push(...(await collected(spool.sendData())));
  await restore(...sent, endOfRepository());
  expect(readFileSync(join(copy, "indices/abc/0/__other"), "utf8")).toBe(`${"b".repeat(5_000_000)}c`);
});

test("lists of the repository come from the leader, which has to have one", async () => {
  const spool = createSpool({ files: localFiles(runProgram, root), limitBytes: 8 << 20, signal });
  writeFileSync(join(root, "indices/abc/0/snap-x.dat"), "shard");
  await expect(collected(spool.sendRest({ isLeader: true }))).rejects.toThrow("leader of the cluster changed");
  writeFileSync(join(root, "index-0"), "of a former leader");
  await restore(...(await collected(spool.sendRest({ isLeader: false }))), endOfRepository());
  expect(existsSync(join(copy, "index-0"))).toBe(false);
  expect(readFileSync(join(copy, "indices/abc/0/snap-x.dat"), "utf8")).toBe("shard");
});

test("files of a canceled snapshot are not in the copy", async () => {
  writeFileSync(join(root, data), "first");
  const first = await collected(fileFrames(localFiles(runProgram, root), data, 0, signal));
  writeFileSync(join(root, "index-0"), "second");
  const second = await collected(fileFrames(localFiles(runProgram, root), "index-0", 0, signal));
  await restore(...first, restartOfRepository(), ...second, endOfRepository());
  expect(existsSync(join(copy, data))).toBe(false);
  expect(readFileSync(join(copy, "index-0"), "utf8")).toBe("second");
});

test("a stream that ends too early, or has a path outside of the repository, is refused", async () => {
  writeFileSync(join(root, data), "first");
  await expect(
    restore(...(await collected(fileFrames(localFiles(runProgram, root), data, 0, signal)))),
  ).rejects.toThrow("ends too early");
  for (const path of ["../config/opensearch.yml", "/etc/passwd", "indices/../../x", ""])
    await expect(restore(jsonFrame({ kind: "part", path, at: 0, bytes: 0 }))).rejects.toThrow("outside");
});
