import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { createBlockClaims } from "./block-claims.ts";

const temporary = (name: string) => mkdtempSync(join(tmpdir(), `holdfast-${name}-`));
const any = async () => true;

test("two directories never get the same block, even at the same time, and each retains its own", async () => {
  const directory = temporary("registry");
  const registries = Array.from({ length: 8 }, () => createBlockClaims(directory, Date.now));
  const blocks = await Promise.all(registries.map((registry, index) => registry.claim(`/data/${index}`, any)));
  expect(new Set(blocks).size).toBe(8);
  const [registry] = registries;
  const [block = ""] = blocks;
  expect(registry?.renew({ directory: "/data/0", block })).toBe(true);
  expect(registry?.renew({ directory: "/data/1", block })).toBe(false);
});

test("a block that the caller cannot use stays free for others", async () => {
  const registry = createBlockClaims(temporary("registry"), Date.now);
  expect(await registry.claim("/a", async (block) => block !== "127.77")).toBe("127.78");
  expect(await registry.claim("/b", any)).toBe("127.77");
});

test("the claim of a removed directory is free for another", async () => {
  let now = 0;
  const registry = createBlockClaims(temporary("registry"), () => now);
  const directory = temporary("a");
  const block = await registry.claim(directory, any);
  writeFileSync(join(directory, "installation.json"), JSON.stringify({ loopback_block: block }));
  now += 3_600_000;
  expect(registry.renew({ directory: "/b", block })).toBe(false);
  rmSync(directory, { recursive: true });
  expect(registry.renew({ directory: "/b", block })).toBe(true);
});

test("of concurrent takeovers of a stale claim at most one succeeds", async () => {
  const directory = temporary("registry");
  const dead = { directory: "/gone", block: "127.77", claimedAt: 0 };
  const script = `
    import { createBlockClaims } from ${JSON.stringify(join(import.meta.dirname, "block-claims.ts"))};
    const registry = createBlockClaims(${JSON.stringify(directory)}, Date.now);
    const own = "/data/" + process.pid;
    console.log("ready");
    process.stdin.on("data", (round) => {
      console.log(registry.renew({ directory: own + "/" + String(round).trim(), block: "127.77" }));
    });`;
  const claimants = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const child = spawn(process.execPath, ["--input-type=module", "--eval", script], { stdio: "pipe" });
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      await lines.next();
      return { child, answer: async () => (await lines.next()).value === "true" };
    }),
  );
  let taken = 0;
  for (let round = 0; round < 100; round += 1) {
    for (const name of readdirSync(directory)) rmSync(join(directory, name));
    writeFileSync(join(directory, "127.77.json"), JSON.stringify(dead));
    for (const { child } of claimants) child.stdin.write(`${round}\n`);
    const holders = (await Promise.all(claimants.map(({ answer }) => answer()))).filter(Boolean);
    expect(holders.length).toBeLessThanOrEqual(1);
    taken += holders.length;
  }
  expect(taken).toBeGreaterThan(0);
  for (const { child } of claimants) child.kill();
});
