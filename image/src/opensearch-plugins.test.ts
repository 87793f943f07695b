import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pluginDescriptor } from "@holdfast/testing/engines/opensearch-plugins.ts";
import { type ZippedFile, zipOf } from "@holdfast/testing/zip.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ensureImage } from "./make-image.ts";
import { newestPath } from "./node-image.ts";
import { readAdditions as readAll } from "./additions.ts";

const readAdditions = (plugins: string) =>
  readAll((variable) => (variable === "HOLDFAST_OPENSEARCH_PLUGINS" ? plugins : ""));

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-plugins-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const descriptorOf = (different: Readonly<Record<string, string>> = {}): ZippedFile => ({
  name: "plugin-descriptor.properties",
  content: pluginDescriptor(different),
});
const write = (name: string, content: Buffer) => writeFileSync(join(directory, name), content);
const fault = async () => (await readAdditions(directory)).opensearch?.fault;

test("checked zips are additions to OpenSearch's images, by their hashes; other files are ignored", async () => {
  const zip = zipOf([descriptorOf(), { name: "words.jar", content: "jar" }]);
  write("words-1.0.zip", zip);
  write("README.md", Buffer.from("for operators"));
  expect(await readAdditions(directory)).toEqual({
    opensearch: {
      artifacts: [
        {
          kind: "plugin",
          name: "words",
          version: "1.0",
          sha256: createHash("sha256").update(zip).digest("hex"),
          file: join(directory, "words-1.0.zip"),
          path: "/usr/local/share/opensearch/opensearch-2.19.4/plugins/words",
        },
      ],
    },
  });
});

test("images with other plugins are other images, and those without any are as before", async () => {
  const plain = newestPath(directory, "opensearch");
  expect(newestPath(directory, "opensearch", await readAdditions(directory))).toBe(plain);
  write("words.zip", zipOf([descriptorOf()]));
  const first = newestPath(directory, "opensearch", await readAdditions(directory));
  write("words.zip", zipOf([descriptorOf({ version: "1.1" })]));
  const second = newestPath(directory, "opensearch", await readAdditions(directory));
  expect(new Set([plain, first, second]).size).toBe(3);
  expect(newestPath(directory, "kafka", await readAdditions(directory))).toBe(newestPath(directory, "kafka"));
});

test.each([
  ["no zip", Buffer.from("text"), "it is no zip file"],
  ["an empty file", Buffer.alloc(0), "it is no zip file"],
  ["a zip whose directory is cut", zipOf([descriptorOf()]).subarray(60), "is damaged"],
  ["another version", zipOf([descriptorOf({ "opensearch.version": "3.0.0" })]), "it is for OpenSearch 3.0.0"],
  [
    "a link",
    zipOf([descriptorOf(), { name: "a", content: "/etc", mode: 0o120_777 }]),
    "neither a file nor a directory",
  ],
  ["a path out of its directory", zipOf([descriptorOf(), { name: "../a", content: "" }]), "does not stay"],
  ["a large descriptor", zipOf([{ ...descriptorOf(), claimedBytes: 1 << 20 }]), "the limit is 65536"],
  ["a descriptor that is larger than it claims", zipOf([{ ...descriptorOf(), claimedBytes: 5 }]), "is damaged"],
])("%s is a fault that names the file", async (_case, content, reason) => {
  write("good.zip", zipOf([descriptorOf({ name: "good" })]));
  write("words.zip", content);
  const { opensearch } = await readAdditions(directory);
  expect(opensearch?.artifacts).toEqual([]);
  expect(opensearch?.fault).toMatch(/^HOLDFAST_OPENSEARCH_PLUGINS: words\.zip: /);
  expect(opensearch?.fault).toContain(reason);
});

test("a link and a directory in place of a zip are faults", async () => {
  symlinkSync("/etc/passwd", join(directory, "words.zip"));
  expect(await fault()).toBe("HOLDFAST_OPENSEARCH_PLUGINS: words.zip: it is no regular file");
  rmSync(join(directory, "words.zip"));
  mkdirSync(join(directory, "words.zip"));
  expect(await fault()).toBe("HOLDFAST_OPENSEARCH_PLUGINS: words.zip: it is no regular file");
});

test("a directory that is absent or relative is a fault, and no directory is none", async () => {
  expect(await readAdditions("")).toEqual({});
  expect((await readAdditions(join(directory, "absent"))).opensearch?.fault).toBe(
    "HOLDFAST_OPENSEARCH_PLUGINS: the directory or a file in it cannot be read (ENOENT): correct it, and start again",
  );
  expect((await readAdditions("plugins")).opensearch?.fault).toBe(
    "HOLDFAST_OPENSEARCH_PLUGINS: the directory is not an absolute path",
  );
});

test("no image is built with a plugin that cannot be used", async () => {
  write("words.zip", Buffer.from("text"));
  const additions = await readAdditions(directory);
  await expect(
    ensureImage({ imagesDir: join(directory, "images"), recipe: "opensearch", additions, progress: () => {} }),
  ).rejects.toThrow("HOLDFAST_OPENSEARCH_PLUGINS: words.zip: it is no zip file");
});
