import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createBlockRegistry } from "./block-registry.ts";

const temporary = (name: string) => mkdtempSync(join(tmpdir(), `holdfast-${name}-`));
const any = async () => true;

test("two directories never have one block, whoever asks at the same time, and each keeps its own", async () => {
  const directory = temporary("registry");
  const registries = Array.from({ length: 8 }, () => createBlockRegistry(directory, Date.now));
  const blocks = await Promise.all(registries.map((registry, index) => registry.claim(`/data/${index}`, any)));
  expect(new Set(blocks).size).toBe(8);
  const [registry] = registries;
  const [block = ""] = blocks;
  expect(registry?.keep({ directory: "/data/0", block })).toBe(true);
  expect(registry?.keep({ directory: "/data/1", block })).toBe(false);
});

test("a block that the caller cannot use stays free for others", async () => {
  const registry = createBlockRegistry(temporary("registry"), Date.now);
  expect(await registry.claim("/a", async (block) => block !== "127.77")).toBe("127.78");
  expect(await registry.claim("/b", any)).toBe("127.77");
});

test("the claim of a directory that is gone is free for another", async () => {
  let now = 0;
  const registry = createBlockRegistry(temporary("registry"), () => now);
  const directory = temporary("a");
  const block = await registry.claim(directory, any);
  writeFileSync(join(directory, "installation.json"), JSON.stringify({ loopback_block: block }));
  now += 3_600_000;
  expect(registry.keep({ directory: "/b", block })).toBe(false);
  rmSync(directory, { recursive: true });
  expect(registry.keep({ directory: "/b", block })).toBe(true);
});
