import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { type AgentPackage, digestOfCode, packAgent, unpackAgent } from "./agent-package.ts";

const files = [
  { name: "main.mjs", text: "1" },
  { name: "driver-a_B.mjs", text: "2" },
];
const valid: AgentPackage = { release: "1.2.3", digest: digestOfCode("1.2.3", files), files };

test("a package is unpacked unchanged", () => {
  expect(unpackAgent(packAgent(valid))).toEqual(valid);
});

test("the digest covers release, names and texts, regardless of the order of files", () => {
  const [first, second] = files as [(typeof files)[0], (typeof files)[0]];
  expect(digestOfCode("1.2.3", [second, first])).toBe(valid.digest);
  const others = [
    digestOfCode("1.2.4", files),
    digestOfCode("1.2.3", [first]),
    digestOfCode("1.2.3", [first, { ...second, text: "3" }]),
    digestOfCode("1.2.3", [first, { ...second, name: "driver-b.mjs" }]),
  ];
  expect(new Set([valid.digest, ...others]).size).toBe(5);
});

test.each<[string, Partial<AgentPackage>]>([
  ["another digest", { digest: "0".repeat(32) }],
  ["a changed file", { files: [{ name: "main.mjs", text: "changed" }] }],
  ["a path as a name", { files: [...files, { name: "../main.mjs", text: "" }] }],
  ["nothing to run", { files: [{ name: "driver.mjs", text: "" }] }],
])("a package with %s is none", (_name, change) => {
  const changed = { ...valid, ...change };
  const named = change.digest === undefined ? { ...changed, digest: digestOfCode("1.2.3", changed.files) } : changed;
  const broken = change.files?.[0]?.text === "changed" ? changed : named;
  expect(() => unpackAgent(packAgent(broken))).toThrow(/package/);
});

test("invalid packages are rejected, including compression bombs", () => {
  expect(() => unpackAgent(Buffer.from("no"))).toThrow("header");
  expect(() => unpackAgent(gzipSync(Buffer.alloc(65 << 20)))).toThrow("larger");
});
