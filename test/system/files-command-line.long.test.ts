import { symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Catalog, FilesConnection, FilesKey, ManagedService, Metrics } from "@holdfast/sdk/responses.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { type CommandLine, createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FilesFixture, openFiles } from "./files/files-service.ts";

// The commands of docs/how-to/files.md, in their order: each test continues from the state of the one before.

const skip = await requireRecipes(import.meta.filename, "files");
/** The first run builds an image with the clients, which takes minutes on a busy machine. */
const imageMs = 600_000;

describe.skipIf(skip !== undefined)("a user of files services, at the command line", { timeout: 180_000 }, () => {
  let image: TestImage;
  let platform: Platform;
  let shell: CommandLine;
  let media: FilesFixture;
  let writer: FilesKey;
  let id: string;

  beforeAll(async () => {
    const built = await testImage("files");
    if (typeof built === "string") throw new Error(built);
    image = built;
  }, imageMs);
  beforeAll(async () => {
    platform = await startPlatform();
    shell = createCommandLine({});
    symlinkSync(platform.directory, join(shell.home, ".holdfast"));
  });
  afterAll(async () => {
    media?.remove();
    shell?.remove();
    await platform?.remove();
  });

  /** The JSON output of a command that must not fail. */
  const run = async <T>(line: string): Promise<T> => {
    const { code, stdout, stderr } = await shell.runHere(["--output", "json", ...line.split(" ")]);
    expect(code, `${line}: ${stderr}`).toBe(0);
    return JSON.parse(stdout) as T;
  };
  /** The text of the object that `accepted` writes, or the refusal. */
  const read = (key: FilesKey) => media.run<string>(key, "read");

  it("creates a service and its keys, and connects boto3 with what was printed", async () => {
    expect((await run<Catalog>("catalog")).files).toEqual({ available: true, reason: null });
    const service = await run<ManagedService>("files create media --plan tier-1 --storage-gb 1 --wait");
    expect(service).toMatchObject({ name: "media", status: "Running", plan_name: "tier-1", storage_size_gb: 1 });
    id = service.id;
    writer = await run<FilesKey>("files keys create media --name shop");
    const reader = await run<FilesKey>("files keys create media --access readonly");
    expect([writer.access, reader.access, reader.name]).toEqual(["readwrite", "readonly", "readonly"]);
    media = await openFiles(platform, image, id);
    expect(await run<FilesConnection>("files connection media")).toMatchObject(media.connection);
    expect(await media.accepted(writer)).toMatchObject({ body: "hello", buckets: [media.bucket] });
    expect(await media.run(reader, "access")).toMatchObject({ get: "", put: "AccessDenied 403" });
    expect((await run<FilesKey[]>("files keys list media")).map(({ name }) => name).toSorted()).toEqual([
      "readonly",
      "shop",
    ]);
    await shell.runHere(["files", "keys", "delete", "media", "readonly", "--yes"]);
    expect(await shell.runHere(["files", "keys", "delete", "media", "readonly", "--yes"])).toMatchObject({ code: 4 });
    const { stdout } = await shell.runHere(["files", "connection", "media", "--certificate"]);
    expect(stdout.trimEnd()).toBe(media.connection.ca_certificate.trimEnd());
    expect(await run("status")).toMatchObject({ services: {}, files_services: { Running: 1 } });
    await waitUntil("the key is refused", async () => (await read(reader)) === "InvalidAccessKeyId 403", {
      withinMs: 5_000,
    });
  });

  it("admits only the networks of its allow-list", async () => {
    await run("files update media --allow 10.254.0.0/16");
    await waitUntil("the client is refused", () =>
      read(writer).then(
        () => false,
        () => true,
      ),
    );
    await run("files update media --allow 127.0.0.0/8 --allow 10.0.0.0/8");
    expect(await media.accepted(writer)).toMatchObject({ body: "hello" });
  });

  it("changes plan and storage, stops and starts, with its objects", async () => {
    expect(await run("files resize media --plan tier-2 --wait")).toMatchObject({ plan_name: "tier-2" });
    expect(await read(writer)).toBe("hello");
    expect(await run("files expand media --storage-gb 2 --wait")).toMatchObject({ storage_size_gb: 2 });
    expect(await run("files stop media --wait")).toMatchObject({ status: "Stopped" });
    expect(await run("files start media --wait")).toMatchObject({ status: "Running" });
    expect(await read(writer)).toBe("hello");
  });

  it("is attached to an app, whose variables connect", async () => {
    await run("apps create shop");
    const attached = await run<Record<string, string>>("apps attach shop media");
    const { S3_ENDPOINT, S3_BUCKET, S3_ACCESS_KEY = "", S3_SECRET = "" } = attached;
    expect([S3_ENDPOINT, S3_BUCKET]).toEqual([media.connection.endpoint, media.bucket]);
    await media.accepted({ ...writer, access_key_id: S3_ACCESS_KEY, secret_access_key: S3_SECRET });
    const { code, stderr } = await shell.runHere(["files", "delete", "media", "--yes"]);
    expect([code === 0, stderr]).toEqual([false, expect.stringContaining("attached to app shop")]);
    await shell.runHere(["apps", "detach", "shop", attached["id"] ?? ""]);
  });

  it("has metrics, and its changes are in the audit log and among the events", async () => {
    await waitUntil("requests are measured", async () => {
      const { series } = await run<Metrics>(
        "metrics media connections files_requests_per_sec files_objects files_bytes",
      );
      return series.length === 4 && series.every(({ points }) => points.length > 0);
    });
    const changes = await run<{ readonly action: string }[]>(`audit --object ${id}`);
    expect(changes.map(({ action }) => action)).toEqual(
      expect.arrayContaining(["managed-service.create", "files-key.create", "files-key.delete"]),
    );
    const { stdout } = await shell.runHere(["events", "--service", "media", "--output", "json"]);
    for (const type of ["service.running", "service.stopped"]) expect(stdout).toContain(`"${type}"`);
  });

  it("has a log, alert rules and exports by its name", async () => {
    const logs = await shell.runHere(["files", "logs", "media", "--since", "1h"]);
    expect([logs.code, logs.stderr]).toEqual([0, ""]);
    const rule = await run<{ id: string }>("alerts create media --metric files_bytes --gt 1000000000 --name large");
    expect((await run<{ id: string }[]>("alerts rules media")).map((each) => each.id)).toContain(rule.id);
    expect(await run("exports list --service media")).toEqual([]);
  });

  it("is deleted and undeleted with its objects and keys", async () => {
    await shell.runHere(["files", "delete", "media", "--yes", "--wait"]);
    expect((await run<ManagedService[]>("files list --deleted")).map((each) => each.id)).toEqual([id]);
    expect(await run(`files undelete ${id} --wait`)).toMatchObject({ name: "media", status: "Running" });
    expect(await read(writer)).toBe("hello");
  });
});
