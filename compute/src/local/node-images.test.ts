import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "@holdfast/common/log.ts";
import { setNewest } from "@holdfast/image/node-image.ts";
import type { Additions } from "@holdfast/image/additions.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createNodeImages } from "./node-images.ts";

let imagesDir: string;
beforeEach(() => {
  imagesDir = mkdtempSync(join(tmpdir(), "holdfast-node-images-"));
});
afterEach(() => rmSync(imagesDir, { recursive: true }));

const search = { engine: "opensearch", version: "2.19" };
const plain = "opensearch-0000000000000001";

function imagesWith(additions: Additions) {
  const abilities = { isolation: "root", loop: false, groups: { version: "none", reason: "" } } as const;
  const holder = join(imagesDir, "holder");
  return createNodeImages({ imagesDir, holder, abilities, additions, environment: {}, log: silentLog });
}

async function makePlain(): Promise<void> {
  mkdirSync(join(imagesDir, plain));
  await setNewest(imagesDir, "opensearch", plain);
}

test("a plugin that cannot be used refuses new machines with its reason, while those with an image have it", async () => {
  await makePlain();
  const images = imagesWith({ opensearch: { artifacts: [], fault: "words.zip: it is no zip file" } });
  const reason = "the image of opensearch cannot be built: words.zip: it is no zip file";
  expect(images.facts().find(({ engine }) => engine === "opensearch")).toEqual({ ...search, available: false, reason });
  expect(() => images.require(search)).toThrow("words.zip: it is no zip file");
  expect(images.require({ ...search, image: plain })?.id).toBe(plain);
});

test("new machines get an image with the plugins, and the facts have their names", async () => {
  await makePlain();
  expect(imagesWith({}).find("opensearch", "2.19")?.id).toBe(plain);
  const request = { kind: "plugin", name: "words", version: "1", sha256: "00", file: "/words.zip" } as const;
  const additions: Additions = { opensearch: { artifacts: [{ ...request, path: "/usr/local/words" }] } };
  const images = imagesWith(additions);
  expect(images.find("opensearch", "2.19")).toBeUndefined();
  const withPlugins = "opensearch-0000000000000002";
  mkdirSync(join(imagesDir, withPlugins));
  await setNewest(imagesDir, "opensearch", withPlugins, additions);
  expect(images.require(search)?.id).toBe(withPlugins);
  const facts = images.facts().find(({ engine }) => engine === "opensearch");
  expect(facts).toMatchObject({ available: true, image: withPlugins, plugins: ["words"] });
  expect(imagesWith({}).find("opensearch", "2.19")?.id).toBe(plain);
});
