import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { addressNetworkOf } from "./address-network.ts";
import { createPublicAddresses } from "./public-addresses.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-public-"));
});
afterEach(() => rm(directory, { recursive: true }));

const open = (block?: string) =>
  createPublicAddresses(join(directory, "public"), block === undefined ? undefined : addressNetworkOf(block));

test("concurrent claims by several controllers get different addresses", async () => {
  const [one, other] = [open("203.0.113.16/28"), open("203.0.113.16/28")];
  const owners = Array.from({ length: 14 }, (_, index) => `m-${index}`);
  const claimed = await Promise.all(
    owners.map((owner, index) => (index % 2 === 0 ? one : other).claim(owner, directory)),
  );
  expect(new Set(claimed).size).toBe(14);
  expect(await one.facts()).toEqual({ publicBlock: "203.0.113.16/28", publicTotal: 14, publicFree: 0 });
  await expect(other.claim("m-14", directory)).rejects.toThrow("all 14 of 203.0.113.16/28 are taken");
});

test("a repeated claim, after a crash or a time-out, returns the same address", async () => {
  const first = await open("203.0.113.16/30").claim("m", directory);
  expect(await open("203.0.113.16/30").claim("m", directory)).toBe(first);
  await open("203.0.113.16/30").release("m");
  expect(await readdir(join(directory, "public"))).toEqual([]);
});

test("admission refuses with the figure, but never a machine that has an address", async () => {
  const addresses = open("203.0.113.16/30");
  await addresses.claim("a", directory);
  expect(await addresses.admit({ id: "b" })).toEqual({ admitted: true });
  await addresses.claim("b", directory);
  const reason = "The host has no free public address for a machine: all 2 of 203.0.113.16/30 are taken.";
  expect(await addresses.admit({ id: "c" })).toEqual({ admitted: false, reason });
  expect(await addresses.admit({ id: "b" })).toEqual({ admitted: true });
});

test("warm-pool machines leave a quarter of the addresses free", async () => {
  const addresses = open("203.0.113.16/29");
  for (const owner of ["a", "b", "c", "d"]) await addresses.claim(owner, directory);
  expect(await addresses.admit({ id: "e", ahead: true })).toEqual({ admitted: true });
  await addresses.claim("e", directory);
  expect(await addresses.admit({ id: "f", ahead: true })).toMatchObject({
    reason: expect.stringContaining(" 1 free public"),
  });
  expect(await addresses.admit({ id: "f" })).toEqual({ admitted: true });
});

test("a claim of an earlier block stays its owner's, and none is claimed without a block", async () => {
  const first = await open("203.0.113.16/30").claim("m", directory);
  const now = open("198.51.100.0/30");
  expect(await now.claim("m", directory)).toBe(first);
  expect(await now.claim("n", directory)).toBe("198.51.100.1");
  expect(await now.facts()).toMatchObject({ publicTotal: 2, publicFree: 1 });
  expect(await open().claim("o", directory)).toBeUndefined();
  expect(await open().admit({ id: "o" })).toEqual({ admitted: true });
  // Rules name each of them once.
  expect(open("203.0.113.0/24").networks).toEqual(["203.0.113.0/24", "198.51.100.1/32"]);
  expect(open("198.51.100.0/30").networks).toEqual(["198.51.100.0/30", `${first}/32`]);
});
