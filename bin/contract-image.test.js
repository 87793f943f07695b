import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { agreedImage, contractFiles, contractFolder, withImage, writeContract } from "./contract-image.js";
import { toolsFor } from "./tools.js";

const tools = toolsFor(process.env);
let root;
let image;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "holdfast-contract-"));
  image = await withImage(tools, async (now) => now);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

test("each of our protos has a file, and nothing of it is lost", () => {
  writeContract(image, root);
  writeContract(image, root);
  const folder = join(root, contractFolder);
  const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".json"));
  const holdfastFiles = image.file.filter(({ name }) => name.startsWith("holdfast/"));
  expect(names.length).toBe(holdfastFiles.length);
  for (const file of holdfastFiles)
    expect(JSON.parse(readFileSync(join(folder, file.name.replace(/proto$/, "json")), "utf8"))).toEqual(file);
});

test("a value that fits into a line is a line, and all others have a line for each member", () => {
  const field = (name) => ({ name, jsonName: "x".repeat(60) });
  const files = contractFiles({ file: [{ name: "holdfast/a.proto", field: [field("a"), field("b")] }] });
  expect([...files.values()]).toEqual([
    `{
 "name": "holdfast/a.proto",
 "field": [
  {"name":"a","jsonName":"${"x".repeat(60)}"},
  {"name":"b","jsonName":"${"x".repeat(60)}"}
 ]
}
`,
  ]);
});

test("the agreed image has imports before the files that need them", () => {
  const seen = new Set();
  for (const { name, dependency = [] } of agreedImage(image).file) {
    expect(dependency.filter((each) => !seen.has(each))).toEqual([]);
    seen.add(name);
  }
  expect(seen.size).toBeGreaterThan(40);
});

test("a removed field breaks the contract", async () => {
  const without = structuredClone(image);
  const [message] = without.file.find(({ name }) => name === "holdfast/v1/token.proto").messageType;
  message.field = message.field.filter(({ name }) => name !== "created_at");
  const [now, agreed] = ["now.json", "agreed.json"].map((name) => join(root, name));
  writeFileSync(now, JSON.stringify(without));
  writeFileSync(agreed, JSON.stringify(agreedImage(image)));
  const compared = tools.run("buf", ["breaking", now, "--against", agreed, "--config", "proto/contract.yaml"]);
  await expect(compared).rejects.toThrow(/"created_at" on message "Token" was deleted/);
});
