import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Instance } from "../engine-driver.ts";
import { createBucketCount } from "./bucket-count.ts";

const deletedDuringCount = vi.hoisted(() => ({ path: "" }));

vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  return {
    ...real,
    async lstat(path: string) {
      if (path === deletedDuringCount.path) rmSync(path);
      return real.lstat(path);
    },
    async opendir(path: string) {
      if (path === deletedDuringCount.path) rmSync(path, { recursive: true });
      return real.opendir(path);
    },
  };
});

let instance: Instance;
let bucket: string;

beforeEach(() => {
  const data = mkdtempSync(join(tmpdir(), "holdfast-bucket-"));
  bucket = join(data, "files", "media");
  mkdirSync(join(bucket, "photos"), { recursive: true });
  mkdirSync(join(bucket, ".sgwtmp"));
  for (const [path, text] of [
    ["one", "1"],
    ["two", "22"],
    ["photos/three", "333"],
    [".sgwtmp/part", "of an upload"],
  ] as const)
    writeFileSync(join(bucket, path), text);
  const paths = { data, config: "", tls: "", run: "", software: "", log: "" };
  instance = { spec: create(InstanceSpecSchema, { bucket: "media" }), paths };
});
afterEach(() => {
  deletedDuringCount.path = "";
  rmSync(instance.paths.data, { recursive: true });
});

const counted = () => {
  const count = createBucketCount(() => 0);
  return waitUntil("the bucket is counted", () => count.last(instance));
};

test("objects are counted without temporary files", async () => {
  expect(await counted()).toEqual({ objects: 3, bytes: 6 });
});

test.each([
  ["an object", "two", { objects: 2, bytes: 4 }],
  ["a directory", "photos", { objects: 2, bytes: 3 }],
])("the count continues when %s is deleted during it", async (_, path, expected) => {
  deletedDuringCount.path = join(bucket, path);
  expect(await counted()).toEqual(expected);
});
