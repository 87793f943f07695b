import {
  chmodSync,
  existsSync,
  linkSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createEngineFile, readEngineFile, setEngineFileMode } from "./engine-file.ts";

const uses = [readEngineFile, createEngineFile, (path: string) => setEngineFileMode(path, 0o666)];

let directory: string;
let identityFile: string;
let link: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "engine-file-"));
  identityFile = join(directory, "identity");
  link = join(directory, "link");
  writeFileSync(identityFile, "the agent's own", { mode: 0o600 });
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test("a file of the engine is read and created, and its mode is set", async () => {
  const path = join(directory, "file");
  await createEngineFile(path);
  expect(await readEngineFile(path)).toBe("");
  writeFileSync(path, "text");
  await createEngineFile(path);
  expect(await readEngineFile(path)).toBe("text");
  await setEngineFileMode(path, 0o600);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  await expect(readEngineFile(join(directory, "missing"))).rejects.toMatchObject({ code: "ENOENT" });
});

test("a symbolic link under its name is neither read, changed nor followed", async () => {
  symlinkSync(identityFile, link);
  for (const use of uses) await expect(use(link)).rejects.toMatchObject({ code: "ELOOP" });
  rmSync(link);
  symlinkSync(join(directory, "missing"), link);
  await expect(createEngineFile(link)).rejects.toMatchObject({ code: "ELOOP" });
  rmSync(link);
  linkSync(identityFile, link);
  for (const use of uses) await expect(use(link)).rejects.toThrow("not a regular file of the engine");
  expect([readFileSync(identityFile, "utf8"), statSync(identityFile).mode & 0o777]).toEqual(["the agent's own", 0o600]);
  expect(existsSync(join(directory, "missing"))).toBe(false);
});

test("a pipe under its name does not block, and a large file is not read", async () => {
  execFileSync("mkfifo", [link]);
  await expect(readEngineFile(link)).rejects.toThrow("not a regular file of the engine");
  chmodSync(identityFile, 0o600);
  writeFileSync(identityFile, Buffer.alloc(5 << 20));
  await expect(readEngineFile(identityFile)).rejects.toThrow("too large");
});
