import { createHash } from "node:crypto";
import { existsSync, globSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { s3Programs } from "@holdfast/testing/servers/s3-program.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bucketDirectory, temporaryDirectory } from "./layout.ts";
import { type ServerUnderTest, startServer } from "@holdfast/testing/engines/files-server.ts";

// The real server by the command of the driver, without its front. No test leaves an unfinished upload to the next one.

const program = (await s3Programs()).find(({ name }) => name === "versitygw")?.path ?? "";

describe.skipIf(program === "")("the server for writers", () => {
  let directory: string;
  let server: ServerUnderTest;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "holdfast-files-server-"));
    server = await startServer(program, directory);
  });
  afterAll(async () => {
    await server?.kill();
    rmSync(directory, { recursive: true });
  });

  const send: ServerUnderTest["send"] = (...request) => server.send(...request);
  const bucket = () => bucketDirectory(server.instance);

  const first = (pattern: RegExp, text: string) => pattern.exec(text)?.[1] ?? "";

  /** Creates an upload of one part; resolves with the path of the upload and the body of its completion. */
  async function upload(object: string, body = "content") {
    const id = first(/<UploadId>(.*)<\/UploadId>/, (await send("POST", `${object}?uploads=`)).text);
    const path = `${object}?uploadId=${id}`;
    await send("PUT", `${object}?partNumber=1&uploadId=${id}`, { body });
    const tag = first(/<ETag>(.*)<\/ETag>/, (await send("GET", path)).text);
    const part = `<Part><PartNumber>1</PartNumber><ETag>${tag}</ETag></Part>`;
    const [directory = ""] = globSync(join(bucket(), temporaryDirectory, "multipart", "*", id));
    return { id, path, directory, complete: `<CompleteMultipartUpload>${part}</CompleteMultipartUpload>` };
  }

  test("completes an upload in parts after a kill during its completion", async () => {
    const { id, path, directory, complete } = await upload("/media/large");
    // As the server names the directory for the time of the completion.
    renameSync(directory, `${directory}.0123-1.inprogress`);
    await server.kill();
    await server.start();
    expect((await send("GET", "/media?uploads=")).text).toContain(`<UploadId>${id}</UploadId>`);
    expect(await send("POST", path, { body: complete })).toMatchObject({ status: 200 });
    expect(await send("GET", "/media/large")).toMatchObject({ status: 200, text: "content" });
  });

  test("does not acknowledge a completion while another one is in progress, and does after it", async () => {
    const { path, directory, complete } = await upload("/media/large");
    const tag = createHash("md5").update(createHash("md5").update("content").digest()).digest("hex");
    renameSync(directory, `${directory}.${tag}-1.inprogress`);
    expect(await send("POST", path, { body: complete })).toMatchObject({ status: 503 });
    renameSync(`${directory}.${tag}-1.inprogress`, directory);
    for (const _ of [1, 2]) expect(await send("POST", path, { body: complete })).toMatchObject({ status: 200 });
  });

  test("does not acknowledge the completion of an aborted upload for an older object", async () => {
    await send("PUT", "/media/one", { body: "old" });
    const { path, complete } = await upload("/media/one");
    expect(await send("DELETE", path)).toMatchObject({ status: 204 });
    expect((await send("POST", path, { body: complete })).text).toContain("<Code>NoSuchUpload</Code>");
  });

  test("keeps the object if a client disconnects while it replaces it", async () => {
    await send("PUT", "/media/one", { body: "old" });
    const { text } = await send("PUT", "/media/one", { body: "x".repeat(1 << 20), announced: 10 << 20 });
    expect(text).toContain("<Code>IncompleteBody</Code>");
    expect(await send("GET", "/media/one")).toMatchObject({ status: 200, text: "old" });
  });

  test("lists unfinished uploads in pages, also while they are aborted", async () => {
    const [one, two, three] = [await upload("/media/up"), await upload("/media/up"), await upload("/media/up2")];
    const page = async (keyMarker: string, marker: string) => {
      const markers = `key-marker=${keyMarker}&upload-id-marker=${marker}`;
      const { text } = await send("GET", `/media?max-uploads=1&uploads=&${markers}`);
      return { id: first(/<UploadId>(.*)<\/UploadId>/, text), isLast: text.includes("<IsTruncated>false<") };
    };
    expect(await page("", "")).toEqual({ id: one.id, isLast: false });
    expect(await page("up", one.id)).toEqual({ id: two.id, isLast: false });
    expect(await page("up", two.id)).toEqual({ id: three.id, isLast: true });
    await send("DELETE", two.path);
    expect(await page("up", two.id)).toMatchObject({ id: one.id });
    await send("DELETE", one.path);
    expect(await page("up", one.id)).toEqual({ id: three.id, isLast: true });
    await send("DELETE", three.path);
  });

  test.each(["a//b", "/a/b", "a/./b", "a/x/../b", "a/%2e%2e/a/b", "a%2f%2fb", ".sgwtmp/x", "a/.sgwtmp", "."])(
    "refuses the key %s, which would be another one or none",
    async (name) => {
      await send("PUT", "/media/a/b", { body: "1" });
      const refused = { status: 400, text: expect.stringContaining("<Code>InvalidArgument</Code>") };
      for (const method of ["PUT", "GET", "DELETE"])
        expect(await send(method, `/media/${name}`, { body: method === "PUT" ? "2" : "" })).toMatchObject(refused);
      const headers = { "x-amz-copy-source": `/media/${name}` };
      expect(await send("PUT", "/media/copy", { headers })).toMatchObject({ status: 400 });
      const body = `<Delete><Object><Key>${decodeURIComponent(name)}</Key></Object></Delete>`;
      const md5 = createHash("md5").update(body).digest("base64");
      const { text } = await send("POST", "/media?delete=", { body, headers: { "content-md5": md5 } });
      expect(text).toContain("<Code>InvalidArgument</Code>");
      expect(await send("GET", "/media/a/b")).toMatchObject({ status: 200, text: "1" });
    },
  );

  test("stores names with dots and a directory's own object", async () => {
    for (const name of ["a/.b", "a/..b", "a/b..", "...", "dir/"])
      expect(await send("PUT", `/media/${name}`)).toMatchObject({ status: 200 });
    expect((await send("GET", "/media?prefix=dir")).text).toContain("<Key>dir/</Key>");
  });

  test("deletes no object for the name of a directory of others", async () => {
    await send("PUT", "/media/a/b", { body: "1" });
    expect(await send("DELETE", "/media/a/")).toMatchObject({ status: 204 });
    expect(await send("GET", "/media/a/b")).toMatchObject({ status: 200, text: "1" });
    const { path, complete } = await upload("/media/a");
    expect((await send("POST", path, { body: complete })).text).toContain("<Code>ExistingObjectIsDirectory</Code>");
    expect(await send("DELETE", path)).toMatchObject({ status: 204 });
  });

  test.each([
    ["aws-chunked", undefined],
    ["gzip,aws-chunked", "gzip"],
    ["gzip", "gzip"],
  ])("stores the content encoding %s without that of the transfer", async (sent, stored) => {
    await send("PUT", "/media/one", { body: "1", headers: { "content-encoding": sent } });
    expect((await send("HEAD", "/media/one")).headers["content-encoding"]).toBe(stored);
  });

  test("creates objects in a directory that concurrent deletions empty", async () => {
    const rounds = Array.from({ length: 8 }, async (_, client) => {
      const statuses = [];
      for (let round = 0; round < 15; round += 1) {
        const path = `/media/busy/${round % 3}/${client}`;
        statuses.push((await send("PUT", path, { body: "1" })).status, (await send("DELETE", path)).status);
      }
      return statuses;
    });
    expect(new Set((await Promise.all(rounds)).flat())).toEqual(new Set([200, 204]));
  });

  test("loses no acknowledged object, and mixes no versions, when it is killed during writes", async () => {
    const bodyOf = (version: number) => `${version} `.repeat(20_000);
    const acknowledged = new Map<string, number>();
    let [count, stopped] = [0, false];
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      for (let version = 0; !stopped; version += 1) {
        const path = `/media/killed/${writer}/${version % 5}`;
        const status = await send("PUT", path, { body: bodyOf(version) }).then(
          (answer) => answer.status,
          () => undefined,
        );
        if (status !== 200) continue;
        acknowledged.set(path, version);
        count += 1;
      }
    });
    for (let kills = 0; kills < 5; kills += 1) {
      const before = count;
      await waitUntil("objects are written", () => count > before + 20);
      await server.kill();
      await server.start();
    }
    stopped = true;
    await Promise.all(writers);
    for (const [path, version] of acknowledged) {
      const { text } = await send("GET", path);
      const stored = Number(text.split(" ", 1)[0]);
      expect(text === bodyOf(stored) && stored >= version, `${path} ${version}`).toBe(true);
    }
    const left = readdirSync(join(bucket(), temporaryDirectory)).filter((name) => name !== "multipart");
    expect(left).toEqual([]);
  });

  test("removes what requests of a killed server left", async () => {
    const left = join(bucket(), temporaryDirectory, "0123.456");
    expect(await send("PUT", "/media/one", { body: "1" })).toMatchObject({ status: 200 });
    writeFileSync(left, "half");
    await server.kill();
    await server.start();
    expect(existsSync(left)).toBe(false);
    expect(await send("GET", "/media/one")).toMatchObject({ status: 200, text: "1" });
  });

  test("replaces objects whose names are as long as file names can be", async () => {
    const name = `/media/long/${"n".repeat(255)}`;
    for (const body of ["1", "2"]) expect(await send("PUT", name, { body })).toMatchObject({ status: 200 });
    expect(await send("GET", name)).toMatchObject({ status: 200, text: "2" });
    expect((await send("PUT", `${name}n`, { body: "1" })).text).toContain("<Code>KeyTooLongError</Code>");
    expect(readdirSync(join(bucket(), "long"))).toEqual(["n".repeat(255)]);
  });

  test.each(["media.test", "media.private.test"])("finds the bucket in host names below %s", async (host) => {
    const bucketHost = `media.${host}`;
    expect(await send("PUT", "/one", { body: "1", host: bucketHost })).toMatchObject({ status: 200 });
    expect(await send("GET", "/media/one", { host })).toMatchObject({ status: 200, text: "1" });
  });
});
