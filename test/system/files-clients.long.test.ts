import { ListObjectsV2Command } from "@aws-sdk/client-s3";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTarget, createTree, type LocalTree, rclone, s3cmd } from "./files/command-line-clients.ts";
import { createFiles, type FilesFixture } from "./files/files-service.ts";
import type { KeyJson } from "./files/key.ts";

const skip = await requireRecipes(import.meta.filename, "files");
/** The first run builds an image with the clients, which takes minutes on a busy machine. */
const imageMs = 600_000;
const clientMs = 180_000;

describe.skipIf(skip !== undefined)("clients of a files service", { timeout: clientMs }, () => {
  let image: TestImage;
  let platform: Platform;
  let media: FilesFixture;
  let writer: KeyJson;
  let reader: KeyJson;
  let tree: LocalTree;

  beforeAll(async () => {
    const built = await testImage("filesClients");
    if (typeof built === "string") throw new Error(built);
    image = built;
  }, imageMs);
  beforeAll(async () => {
    platform = await startPlatform();
    media = await createFiles(platform, image, "media");
    [writer, reader] = [await media.createKey("shop"), await media.createKey("site", "readonly")];
    await media.accepted(writer);
    tree = createTree(media, "tree");
  });
  afterAll(async () => {
    media?.remove();
    await platform?.remove();
  });

  it.each(["path", "host"] as const)("rclone copies, checks, syncs and deletes a tree, in %s style", async (style) => {
    const run = rclone(media, writer, style);
    const remote = `media:${media.bucket}/rclone-${style}`;
    await run("copy", tree.directory, remote, "--transfers", "8");
    await run("check", "--download", tree.directory, remote);
    const listed = (await run("lsf", "-R", "--files-only", remote)).trimEnd().split("\n").toSorted();
    expect(listed).toEqual(tree.paths);
    await run("moveto", `${remote}/empty`, `${remote}/moved`);
    expect(await run("cat", `${remote}/moved`)).toBe("");
    await run("sync", tree.directory, remote);
    await run("check", tree.directory, remote);
    await run("delete", remote);
    expect(await run("lsf", "-R", "--files-only", remote)).toBe("");
  });

  it("rclone reads with a readonly key", async () => {
    const [write, read] = [rclone(media, writer, "path"), rclone(media, reader, "path")];
    const remote = `media:${media.bucket}/readonly`;
    await write("copyto", `${tree.directory}/a+b & c.txt`, `${remote}/one`);
    expect(await read("cat", `${remote}/one`)).toBe("plus and ampersand");
    expect(await read("lsf", remote)).toBe("one\n");
  });

  it("s3cmd puts in parts, lists, syncs both ways and deletes, with the bucket in the host name", async () => {
    const run = s3cmd(media, writer);
    const remote = `s3://${media.bucket}/s3cmd/`;
    await run("sync", `${tree.directory}/`, remote);
    const listed = (await run("ls", "-r", remote)).trimEnd().split("\n");
    expect(listed.map((line) => line.slice(line.indexOf(remote) + remote.length)).toSorted()).toEqual(tree.paths);
    const target = createTarget(media, "s3cmd");
    await run("sync", remote, `${target}/`);
    await media.runTool(["diff", "-r", tree.directory, target]);
    expect(await run("info", `${remote}large.bin`)).toContain(`File size: ${12 << 20}`);
    await run("modify", "--add-header=x-amz-meta-by:s3cmd", `${remote}empty`);
    expect(await run("info", `${remote}empty`)).toMatch(/x-amz-meta-by: s3cmd/);
    await expect(s3cmd(media, reader)("del", `${remote}empty`)).rejects.toThrow(/403 \(AccessDenied\)/);
    await run("del", "-r", "--force", remote);
    expect(await run("ls", "-r", remote)).toBe("");
  });

  it("boto3 uploads 20 parts concurrently, and an aborted upload is not listed", async () => {
    expect(await media.run(writer, "wide")).toEqual({ parts: 20, tag: true, range: true, same: true, uploads: 0 });
  });

  it("calls for features that the service does not have are 501", async () => {
    const refusals = await media.run<Record<string, string>>(writer, "lacking");
    const names = ["lifecycle", "encryption", "notifications", "replication", "website", "logging"];
    const all = [...names, "encrypted object", "client's key"].map((name) => [name, "NotImplemented 501"]);
    expect(refusals).toEqual({ ...Object.fromEntries(all), versions: "VersioningNotConfigured 501" });
  });

  it("a client that creates the bucket before its uploads finds that it has it", async () => {
    expect(await media.run(writer, "creation")).toEqual({
      creation: "BucketAlreadyOwnedByYou 409",
      presigned: 409,
      "other bucket": "AccessDenied 403",
    });
    expect(await media.run(reader, "creation")).toMatchObject({ creation: "AccessDenied 403", presigned: 403 });
  });

  it("a new key is accepted, and a revoked one refused, within 5 s", async () => {
    const key = await media.createKey("short");
    const client = media.sdkClient(key);
    const list = () => client.send(new ListObjectsV2Command({ Bucket: media.bucket, MaxKeys: 1 }));
    const isAccepted = () =>
      list().then(
        () => true,
        () => false,
      );
    await waitUntil("the key is accepted", isAccepted, { withinMs: 5_000, everyMs: 50 });
    expectStatus(await platform.rest.delete(media.path(`/keys/${key.id}`)), 204);
    await waitUntil("the key is refused", async () => !(await isAccepted()), { withinMs: 5_000, everyMs: 50 });
    await expect(list()).rejects.toMatchObject({ name: "InvalidAccessKeyId" });
    client.destroy();
  });

  it("an upload accepts checksums of parts only of the algorithm that its creation names", async () => {
    expect(await media.run(writer, "checksums")).toEqual({ named: "", unnamed: "InvalidPart 400" });
  });
});
