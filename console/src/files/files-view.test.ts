import { partial } from "@holdfast/testing/partial.ts";
import type { Catalog, FilesConnection, FilesKey } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import { accessText, filesDefaults, filesSnippets, keyText, newFilesOf } from "./files-view.ts";

test("the form has the smallest plan and the default clients, and its request is complete", () => {
  const input = filesDefaults(
    partial<Catalog>({
      plans: [{ plan_name: "tier-1" }, { plan_name: "tier-2" }],
      limits: { storage_size_gb_min: 1 },
      default_allowed_cidrs: ["127.0.0.0/8", "10.0.0.0/8"],
    }),
  );
  expect(newFilesOf({ ...input, name: "media" })).toEqual({
    name: "media",
    plan_name: "tier-1",
    storage_size_gb: 10,
    allowed_cidrs: ["127.0.0.0/8", "10.0.0.0/8"],
  });
});

test("each snippet has endpoint, bucket and region", () => {
  const connection = partial<FilesConnection>({
    endpoint: "https://media-x7k2p9qa.local.holdfast.test:9000",
    bucket: "media-x7k2p9qa",
    region: "us-east-1",
  });
  for (const { title, text } of filesSnippets(connection))
    for (const part of Object.values(connection)) expect(text, title).toContain(part);
});

test("a key is text that clients read", () => {
  const key = partial<FilesKey>({ access_key_id: "HFRW", secret_access_key: "s" });
  expect(keyText(key)).toBe("AWS_ACCESS_KEY_ID=HFRW\nAWS_SECRET_ACCESS_KEY=s");
  expect([accessText("readonly"), accessText("readwrite")]).toEqual(["only reads", "reads and writes"]);
});
