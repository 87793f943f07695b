import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFiles, type FilesFixture } from "../system/files/files-service.ts";
import type { KeyJson } from "../system/files/key.ts";
import { knownFailures } from "./s3-tests/known-failures.ts";
import { featuresNotOffered, nameOf, type Outcomes, summaryOf } from "./s3-tests/outcomes.ts";

// The tests of ceph/s3-tests, from a checkout that HOLDFAST_TEST_S3_TESTS names (npm run faults -- --s3-tests DIR).

const checkout = process.env["HOLDFAST_TEST_S3_TESTS"];
const skip = checkout === undefined ? "no checkout" : await requireRecipes(import.meta.filename, "files");
/** The first run builds an image with the clients, which takes minutes on a busy machine. */
const imageMs = 600_000;
const suiteMs = 3_600_000;

/** Settings of the suite: accounts other than the main one are named and not used. */
function settingsOf({ connection }: FilesFixture, { access_key_id: id, secret_access_key: secret }: KeyJson): string {
  const account = [`access_key = ${id}`, `secret_key = ${secret}`, `user_id = ${id}`, `display_name = ${id}`];
  const section = (name: string, ...more: readonly string[]) => [
    `[${name}]`,
    ...account,
    "email = a@b.example",
    ...more,
  ];
  return [
    "[DEFAULT]",
    `host = ${connection.host}`,
    `port = ${connection.port}`,
    "is_secure = True",
    "ssl_verify = True",
    "[fixtures]",
    "bucket prefix = unused-{random}-",
    ...section("s3 main", `api_name = ${connection.region}`),
    ...["s3 alt", "iam", "iam root", "iam alt root"].flatMap((name) => section(name)),
    ...section("s3 tenant", "tenant = other"),
    "",
  ].join("\n");
}

describe.skipIf(skip !== undefined)("ceph/s3-tests on a files service", () => {
  let image: TestImage;
  let platform: Platform;
  let media: FilesFixture;
  let key: KeyJson;

  beforeAll(async () => {
    const built = await testImage("filesClients");
    if (typeof built === "string") throw new Error(built);
    image = built;
  }, imageMs);
  beforeAll(async () => {
    platform = await startPlatform();
    media = await createFiles(platform, image, "media", { storage_size_gb: 2 });
    key = await media.createKey("suite");
    await media.accepted(key);
  });
  afterAll(async () => {
    media?.remove();
    await platform?.remove();
  });

  it(
    "fails only known tests",
    async () => {
      const directory = join(media.directory, "suite");
      mkdirSync(directory);
      chmodSync(directory, 0o777);
      cpSync(join(checkout ?? "", "s3tests"), join(directory, "s3tests"), { recursive: true });
      copyFileSync(join(checkout ?? "", "pytest.ini"), join(directory, "pytest.ini"));
      copyFileSync(join(import.meta.dirname, "s3-tests", "one_bucket.py"), join(directory, "one_bucket.py"));
      writeFileSync(join(directory, "s3tests.conf"), settingsOf(media, key));
      const offered = featuresNotOffered.map((mark) => `not ${mark}`).join(" and ");
      const files = ["test_s3", "test_headers"].map((name) => `s3tests/functional/${name}.py`);
      const outcomesFile = join(directory, "outcomes.json");
      const options = ["-p", "one_bucket", "-p", "no:cacheprovider", "-q", "--tb=line", "--timeout=300", "-m", offered];
      const pytest = `cd ${directory} && exec python3 -m pytest "$@"`;
      await media
        .runTool(["sh", "-c", pytest, "sh", ...options, ...files], {
          S3TEST_CONF: join(directory, "s3tests.conf"),
          S3_OUTCOMES: outcomesFile,
          PYTHONPATH: directory,
          REQUESTS_CA_BUNDLE: join(media.directory, "ca.pem"),
        })
        .catch((error: unknown) => {
          // A failed test makes pytest fail; the outcomes are in the file.
          if (!existsSync(outcomesFile)) throw error;
        });
      const outcomes = JSON.parse(readFileSync(outcomesFile, "utf8")) as Outcomes;
      const { passed, skipped, failed } = summaryOf(outcomes);
      console.log(JSON.stringify({ passed, failed: failed.length, skipped }, undefined, 1));
      const known = new Set(knownFailures.flatMap(({ tests }) => tests));
      const errors = Object.entries(outcomes)
        .filter(([id, { outcome }]) => outcome === "failed" && !known.has(nameOf(id)))
        .map(([id, { error }]) => `${id}: ${error}`);
      expect(errors).toEqual([]);
      const expected = knownFailures.flatMap(({ sometimes, tests }) => (sometimes === true ? [] : tests));
      expect(expected.filter((name) => !failed.includes(name))).toEqual([]);
    },
    suiteMs,
  );
});
