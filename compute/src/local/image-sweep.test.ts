import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "@holdfast/common/log.ts";
import { openImageUses } from "@holdfast/image/image-uses.ts";
import { afterEach, beforeEach, expect, it } from "vitest";
import { testMachineSpec } from "@holdfast/testing/machines/machine-spec.ts";
import { createImageSweep, withGuestKernel, withImage } from "./image-sweep.ts";
import { layoutOf } from "./machine-paths.ts";
import { type MachineRecord, readRecord, writeRecord } from "./machine-record.ts";

const dayMs = 86_400_000;
/** An id that no other test uses, because images that a machine of any installation has mounted are not removed. */
const own = randomBytes(7).toString("hex");
const [older, newer] = [`trixie-${own}01`, `trixie-${own}02`];
let directory: string;
let imagesDir: string;
let now = 0;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-imageSweep-"));
  imagesDir = join(directory, "images");
  now = Date.now();
  for (const id of [older, newer]) {
    mkdirSync(join(imagesDir, id), { recursive: true });
    openImageUses(imagesDir, directory).add(id);
  }
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

async function machine(image: string): Promise<string> {
  const spec = testMachineSpec();
  const paths = layoutOf(directory).machine(spec.id);
  mkdirSync(paths.directory, { recursive: true });
  const record: MachineRecord = {
    spec,
    number: 1,
    address: "127.99.0.1",
    uid: null,
    disk: "directory",
    diskBytes: 1,
    formattedBytes: 1,
    image,
    starts: 1,
    createdAt: now,
  };
  await writeRecord(paths.record, record);
  return paths.record;
}

/** Ids after this many days, as the hourly sweep leaves them. */
async function after(days: number): Promise<string[]> {
  now += days * dayMs;
  const imageSweep = createImageSweep({ layout: layoutOf(directory), imagesDir, now: () => now, log: silentLog });
  await imageSweep.sweep();
  imageSweep.close();
  return readdirSync(imagesDir).filter((name) => name === older || name === newer);
}

it("retains the images of machines, and removes others after a while", async () => {
  await machine(newer);
  expect(await after(1)).toEqual([older, newer]);
  expect(await after(8)).toEqual([newer]);
  expect(await after(100)).toEqual([newer]);
});

it("retains a replaced image for two weeks, for a rollback", async () => {
  const path = await machine(older);
  const record = await readRecord(path);
  if (record === undefined) throw new Error("it is there");
  const replaced = withImage(record, newer, now);
  expect(withImage(replaced, newer, now + dayMs)).toEqual(replaced);
  await writeRecord(path, replaced);
  expect(await after(13)).toEqual([older, newer]);
  expect(await after(2)).toEqual([older, newer]);
  expect(await after(8)).toEqual([newer]);
});

it("retains a virtual machine's kernel, and a replaced one for two weeks", async () => {
  const [first, second] = [`guest-${own}01`, `guest-${own}02`];
  for (const id of [first, second]) {
    mkdirSync(join(imagesDir, id));
    openImageUses(imagesDir, directory).add(id);
  }
  const kernels = async (days: number) => {
    await after(days);
    return readdirSync(imagesDir).filter((name) => name === first || name === second);
  };
  const path = await machine(newer);
  const record = await readRecord(path);
  if (record === undefined) throw new Error("it is there");
  // The record precedes the pinning of kernels: only its instance has the kernel that it booted from.
  const replaced = withGuestKernel(record, second, first, now);
  expect(withGuestKernel(replaced, second, first, now + dayMs)).toEqual(replaced);
  await writeRecord(path, replaced);
  expect(await kernels(13)).toEqual([first, second]);
  expect(await kernels(2)).toEqual([first, second]);
  expect(await kernels(8)).toEqual([second]);
  expect(await kernels(100)).toEqual([second]);
});

it("retains images of another installation of the host", async () => {
  const other = mkdtempSync(join(tmpdir(), "holdfast-other-"));
  openImageUses(imagesDir, other).add(older);
  for (const days of [1, 8, 8]) expect(await after(days)).toContain(older);
  rmSync(other, { recursive: true });
});
