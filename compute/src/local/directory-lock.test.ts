import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createDirectoryLock } from "./directory-lock.ts";

const { signal } = new AbortController();
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-lock-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

it("admits one at a time, and everyone in the end", async () => {
  const locks = [createDirectoryLock(directory), createDirectoryLock(directory)];
  let inside = 0;
  let most = 0;
  const entries = Array.from({ length: 20 }, async (_, n) =>
    locks[n % 2]?.withLock("a", signal, async () => {
      inside++;
      most = Math.max(most, inside);
      await new Promise(setImmediate);
      inside--;
    }),
  );
  await Promise.all(entries);
  expect(most).toBe(1);
});

it("is free as soon as its owner is killed, and not before", async () => {
  const source = `const { createDirectoryLock } = await import(${JSON.stringify(join(import.meta.dirname, "directory-lock.ts"))});
    await createDirectoryLock(${JSON.stringify(directory)}).withLock("b", new AbortController().signal, async () => {
      console.log("held");
      await new Promise(() => setInterval(() => {}, 60_000));
    });`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", source], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  const lock = createDirectoryLock(directory);
  expect(await lock.tryWithLock("b", async () => true)).toBeUndefined();
  const waiting = lock.withLock("b", signal, async () => "mine");
  child.kill("SIGKILL");
  expect(await waiting).toBe("mine");
});

const isRoot = process.getuid?.() === 0;
it.skipIf(!isRoot)(`cannot be taken by another user${isRoot ? "" : " (skipped: needs root)"}`, async () => {
  const open = await mkdtemp(join(tmpdir(), "holdfast-lock-"));
  await chmod(open, 0o755);
  const path = join(open, "locks", "c");
  const squat = async () => {
    const [code] = await once(spawn("flock", ["-n", path, "true"], { uid: 65_534, stdio: "ignore" }), "exit");
    return Number(code);
  };
  const locked = await createDirectoryLock(open).tryWithLock("c", async () => [await squat(), await squat()]);
  expect(locked?.includes(0)).toBe(false);
  // It is locked before the first owner as well.
  expect(await squat()).not.toBe(0);
  expect(await createDirectoryLock(open).tryWithLock("c", async () => "mine")).toBe("mine");
  await rm(open, { recursive: true });
});

it("ends the wait when the caller's signal fires", async () => {
  const lock = createDirectoryLock(directory);
  await lock.withLock("c", signal, async () => {
    await expect(lock.withLock("c", AbortSignal.timeout(20), async () => undefined)).rejects.toThrow("timeout");
  });
});
