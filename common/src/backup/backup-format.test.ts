import { spawnSync } from "node:child_process";
import { createReadStream } from "node:fs";
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openManifest, sealManifest } from "./backup-manifest.ts";
import { type BackupReader, openBackup, openChain } from "./backup-reader.ts";
import { openLog, sealLog } from "./log-object.ts";
import { logObject, manifestObject } from "./object-names.ts";
import { readDelta } from "./page-delta.ts";
import { readTarHeader, tarBlockBytes, tarPaddingOf } from "./tar-header.ts";

const pages = join(import.meta.dirname, "../../../docs/reference/backup-format");
const vectors = join(pages, "vectors");
const location = { service: "s-1", backup: "b-1", attempt: 1 };
const read = (name: string) => readFile(join(vectors, name));
const keyOf = async () => ({ id: "k-1", secret: Buffer.from((await read("key")).toString(), "base64") });

test("the test vectors open as their plain content", async () => {
  const key = await keyOf();
  const get = async (object: string) => createReadStream(join(vectors, object)) as AsyncIterable<Buffer>;
  const backup = await openBackup({ location, key, get });
  const [stream] = backup.manifest.streams;
  if (stream === undefined) throw new Error("no stream");
  expect(stream.parts.length).toBeGreaterThan(1);
  expect(await buffer(backup.read(stream))).toEqual(await read("data.bin"));
  const sealed = await read(logObject({ service: "s-1", term: 2 }, 7));
  const opened = openLog(sealed, { service: "s-1", term: 2, sequence: 7 }, () => key.secret);
  expect(opened.log).toEqual(await read("log.bin"));
  expect(opened.header).toMatchObject({ branch: "1", from: "0/3000000", to: "0/300001E" });
});

const filesOf = async (root: string) => {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const found = paths.map(async (path) => [relative(root, path), await readFile(path, "utf8")] as const);
  return Object.fromEntries(await Promise.all(found));
};

test("the increment of the test vectors restores the files on top of its base", async () => {
  const key = await keyOf();
  const get = async (object: string) => createReadStream(join(vectors, object)) as AsyncIterable<Buffer>;
  const of = (backup: string) => ({ location: { ...location, backup }, key, get });
  const [full, increment] = await openChain([of("b-2"), of("b-3")]);
  const files: Record<string, string> = {};
  const before = splitTar(await buffer(contentOf(full)));
  let last = "";
  for await (const step of readDelta(contentOf(increment))) {
    if (step.kind === "file") files[(last = step.path)] = "";
    else if (step.kind === "same") files[last] += before.get(last)?.subarray(step.from, step.to).toString() ?? "";
    else if (step.kind === "changed") files[last] += step.bytes.toString();
  }
  expect(files).toEqual(await filesOf(join(vectors, "files")));
  await expect(openChain([of("b-3")])).rejects.toThrow("b-3 is based on b-2, which is missing");
  await expect(openChain([of("b-2"), of("b-2")])).rejects.toThrow("b-2 is not based on the stored b-2");
  await increment?.verify("all");
});

function contentOf(reader: BackupReader | undefined): AsyncIterable<Buffer> {
  const stream = reader?.manifest.streams[0];
  if (reader === undefined || stream === undefined) throw new Error("no stream");
  return reader.read(stream);
}

function splitTar(tar: Buffer): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  for (let at = 0; ; ) {
    const entry = readTarHeader(tar.subarray(at, at + tarBlockBytes));
    if (entry === undefined) return files;
    files.set(entry.path, tar.subarray((at += tarBlockBytes), at + entry.size));
    at += entry.size + tarPaddingOf(entry.size);
  }
}

test("the current format equals that of the test vectors", async () => {
  const key = await keyOf();
  const sealed = await read(manifestObject(location));
  const manifest = await openManifest(sealed, location, key);
  const { salt } = JSON.parse(sealed.subarray(9, 9 + sealed.readUInt32BE(5)).toString()) as { salt: string };
  expect(await sealManifest(manifest, key, () => Buffer.from(salt, "base64"))).toEqual(sealed);
  const log = await read(logObject({ service: "s-1", term: 2 }, 7));
  const { header } = openLog(log, { service: "s-1", term: 2, sequence: 7 }, () => key.secret);
  const again = sealLog(await read("log.bin"), header, key, { salt: Buffer.alloc(32, 5), iv: Buffer.alloc(16, 6) });
  expect(again).toEqual(log);
});

const python =
  spawnSync("python3", ["-c", "import cryptography"]).status === 0 && spawnSync("zstd", ["-V"]).status === 0;

describe.skipIf(!python)(`the readers in Python${python ? "" : " (skipped: no cryptography or no zstd here)"}`, () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "holdfast-vectors-"));
    await cp(vectors, directory, { recursive: true });
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  const runReader = (reader: string, ...words: string[]) => {
    const argv = [join(pages, reader), directory, "s-1", ...words, join(directory, "key"), join(directory, "out")];
    const { status, stderr } = spawnSync("python3", argv, { encoding: "utf8" });
    return { status, stderr };
  };
  const run = (...words: string[]) => runReader("read_backup.py", ...words, "k-1");

  test("open the test vectors and reject changed objects", async () => {
    expect(runReader("read_log.py", "2", "7")).toMatchObject({ status: 0 });
    expect(await readFile(join(directory, "out"))).toEqual(await read("log.bin"));
    await rm(join(directory, "out"));
    expect(run("b-1", "1")).toMatchObject({ status: 0 });
    expect(await readFile(join(directory, "out/data.bin"))).toEqual(await read("data.bin"));
    expect(run("b-0", "1").status).not.toBe(0);
    await rm(join(directory, "out"), { recursive: true });
    // An increment without its base, or with another base, is rejected.
    expect(run("b-3", "1")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("holdfast backup 2") as string,
    });
    const readChain = (...chain: string[]) =>
      runReader("read_increment.py", ...chain.flatMap((id) => [id, "1", "k-1", join(directory, "key")]).slice(0, -1));
    expect(readChain("b-2", "b-3")).toMatchObject({ status: 0 });
    expect(await filesOf(join(directory, "out"))).toEqual(await filesOf(join(vectors, "files")));
    const wrong = readChain("b-2", "b-1");
    expect(wrong).toMatchObject({ status: 1, stderr: expect.stringContaining("holdfast backup 1") as string });
    const part = join(directory, "services/s-1/backups/b-1/1/data.bin/000002");
    const bytes = await readFile(part);
    bytes.writeUInt8(bytes.readUInt8(bytes.length - 20) ^ 1, bytes.length - 20);
    await writeFile(part, bytes);
    expect(run("b-1", "1")).toMatchObject({ status: 1, stderr: expect.stringContaining("refused") as string });
  });
});
