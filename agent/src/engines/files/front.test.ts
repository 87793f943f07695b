import { chmodSync, chownSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { asRoot, programDirectory, testProgram, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { startTemporaryProcess, type TemporaryProcess } from "@holdfast/testing/platform/temporary-process.ts";
import { s3Programs } from "@holdfast/testing/servers/s3-program.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Instance } from "../engine-driver.ts";
import { applyWords, endForbiddenSessions } from "../front/front-commands.ts";
import { frontFiles } from "../front/front-config.ts";
import { frontCompanion } from "../front/front.ts";
import { frontOf } from "./front.ts";
import { serverSocket } from "./layout.ts";
import { type Sent, type ServerUnderTest, startServer } from "@holdfast/testing/engines/files-server.ts";

// The real server behind a real HAProxy with the driver's configuration.

const program = (await s3Programs()).find(({ name }) => name === "versitygw")?.path ?? "";
/** The image with Valkey has HAProxy too. */
const isPossible = program !== "" && hasEngine("valkey", "8.1");

describe.skipIf(!isPossible)("the front of a files service", () => {
  const directory = isPossible ? programDirectory("holdfast-files-front") : "";
  let server: ServerUnderTest;
  let instance: Instance;
  let haproxy: TemporaryProcess | undefined;
  let front: { readonly port: number; readonly ca: string };

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    const { cert, key } = await createTestCertificate();
    server = await startServer(program, directory);
    const spec = { ...server.instance.spec, port, address: "127.0.0.1", allowedCidrs: ["127.0.0.0/8"], vcpu: 1 };
    instance = { ...server.instance, spec };
    const { config, run, tls } = instance.paths;
    writeFileSync(join(tls, "server.crt"), cert);
    writeFileSync(join(tls, "server.key"), key);
    const described = { ...frontOf(instance), program: "/usr/sbin/haproxy" };
    for (const { name, content } of frontFiles(described)) writeFileSync(join(config, name), content);
    chmodSync(directory, 0o755);
    const ofFront = [
      config,
      run,
      tls,
      join(tls, "server.crt"),
      join(tls, "server.key"),
      serverSocket(instance, "writers"),
    ];
    for (const path of ofFront) if (asRoot) chownSync(path, testUid, testUid);
    const argv = ["/bin/sh", "-c", 'echo starting; exec "$@"', "sh", ...frontCompanion(described).command.argv];
    const launch = testProgram("valkey", "8.1").launch({ argv, uid: testUid, binds: [directory], asRoot });
    haproxy = await startTemporaryProcess(launch, /starting/);
    const answers = () => endForbiddenSessions(described, AbortSignal.timeout(5_000)).then(() => true);
    await waitUntil("the front answers", answers);
    front = { port, ca: cert };
  });
  afterAll(async () => {
    await haproxy?.end("SIGKILL");
    await server?.kill();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Status and code of the error of a request through the front. */
  async function send(method: string, path: string, sent: Sent = {}): Promise<string> {
    const { status, text } = await server.send(method, path, { ...sent, front });
    return `${status} ${/<Code>(.*)<\/Code>/.exec(text)?.[1] ?? text}`.trim();
  }

  test("requests reach the server with the bucket in the path and in both host names", async () => {
    expect(await send("PUT", "/media/one", { body: "1" })).toBe("200");
    for (const host of ["media.media.test", "media.media.private.test"])
      expect(await send("GET", "/one", { host })).toBe("200 1");
  });

  test.each(["localhost", "media.media.test", "media.media.private.test", "media.media"])(
    "the bucket can be neither created nor deleted at the host %s",
    async (host) => {
      const path = host === "localhost" ? "/media" : "/";
      expect(await send("PUT", path, { host })).toBe("409 BucketAlreadyOwnedByYou");
      expect(await send("DELETE", path, { host })).toBe("403 AccessDenied");
      expect(await send("PUT", "/other")).toBe("403 AccessDenied");
    },
  );

  test("a full disk refuses writes, and neither reads, deletions nor completions", async () => {
    const { text } = await server.send("POST", "/media/large?uploads=", { front });
    const upload = `uploadId=${/<UploadId>(.*)<\/UploadId>/.exec(text)?.[1]}`;
    const { headers } = await server.send("PUT", `/media/large?partNumber=1&${upload}`, { body: "part", front });
    const signal = AbortSignal.timeout(10_000);
    await applyWords(frontOf({ ...instance, writesBlocked: true }), signal);
    for (const path of ["/media/two", "/media/two?delete", `/media/large?partNumber=2&${upload}`])
      expect(await send("PUT", path, { body: "2" })).toBe("507 InsufficientStorage");
    expect(await send("POST", "/media/other?uploads=")).toBe("507 InsufficientStorage");
    expect(await send("GET", "/media/one")).toBe("200 1");
    const part = `<Part><PartNumber>1</PartNumber><ETag>${headers.etag}</ETag></Part>`;
    const body = `<CompleteMultipartUpload>${part}</CompleteMultipartUpload>`;
    expect(await send("POST", `/media/large?${upload}`, { body })).toMatch(/^200/);
    expect(await send("DELETE", "/media/large")).toBe("204");
    await applyWords(frontOf(instance), signal);
    expect(await send("PUT", "/media/two", { body: "2" })).toBe("200");
  });

  test("pages of any origin read a refusal", async () => {
    const headers = { "x-amz-server-side-encryption": "AES256" };
    const refused = await server.send("PUT", "/media/one", { headers, front });
    expect(refused).toMatchObject({ status: 501, headers: { "access-control-allow-origin": "*" } });
  });
});
