import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { addressOf, agentUidOf, containerUidOf, createMachineNumbers, uidOf } from "./machine-number.ts";

const everyone = "         0          0 4294967295\n";

it("assigns addresses and users that no other number or block has", () => {
  expect(addressOf("127.77", 1)).toBe("127.77.0.1");
  expect(addressOf("127.77", 258)).toBe("127.77.1.2");
  expect(uidOf("127.77", 1, everyone)).not.toBe(uidOf("127.78", 1, everyone));
  expect(uidOf("127.255", 65_535, everyone)).toBeLessThan(2 ** 31);
  expect(uidOf("127.77", 7, "0 100000 65536\n")).toBe(10_007);
});

it("gives the containers of a machine users that neither another machine nor an engine or agent has", () => {
  const first = containerUidOf("127.77", 1, everyone) ?? 0;
  expect(containerUidOf("127.77", 2, everyone)).toBe(first + 65_536);
  const firsts = Array.from({ length: 31_899 }, (_, index) => containerUidOf("127.77", index + 1, everyone));
  expect(new Set(firsts).size).toBe(firsts.length);
  expect(Math.min(...firsts.map(Number))).toBeGreaterThan(agentUidOf(uidOf("127.255", 65_535, everyone)));
  expect(Math.max(...firsts.map(Number)) + 65_536).toBeLessThan(2 ** 32);
  // A host that is a container with few users has none for the containers of its machines.
  expect(containerUidOf("127.77", 1, "0 100000 65536\n")).toBeNull();
});

it("claims each number once, skips network addresses, and reuses freed ones", async () => {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-numbers-"));
  try {
    const [one, two] = [createMachineNumbers(directory), createMachineNumbers(directory)];
    const claimed = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 ? one : two).claim(`m${n}`, directory)),
    );
    expect(new Set(claimed).size).toBe(20);
    expect(await one.of("m3")).toEqual([claimed[3]]);
    await one.release("m4", claimed[3] ?? 0);
    expect(await one.of("m3")).toEqual([claimed[3]]);
    await one.release("m3", claimed[3] ?? 0);
    expect(await two.claim("next", directory)).toBe(claimed[3]);
    const small = createMachineNumbers(directory, { reserved: [21], end: 23 });
    expect(await small.claim("last", directory)).toBe(22);
    await expect(small.claim("over", directory)).rejects.toThrow("no free address for a machine: all 21 of its block");
    await small.release("last", 22);
    expect(await small.claim("over", directory)).toBe(22);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
