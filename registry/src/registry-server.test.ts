import { randomBytes } from "node:crypto";
import { chownSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { createClientAddresses } from "@holdfast/common/client-address.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { inImage } from "@holdfast/image/in-image.ts";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import { AccessResponseSchema } from "@holdfast/proto/holdfast/registry/v1/registry_pb.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { inheritedNames } from "@holdfast/testing/hostile/inherited-names.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { asRoot, programDirectory, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { runLaunch } from "@holdfast/testing/servers/run-launch.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createAccessTokens } from "./access-token.ts";
import { createRegistryProgram, imagesBelow, type RegistryProgram } from "./registry-program.ts";
import { type RegistryServer, startRegistryServer } from "./registry-server.ts";
import { createRepositoryUsage } from "./repository-usage.ts";

// The real docker-registry with skopeo as its client; only the controller's decision about callers is a table.

const skipped = asRoot
  ? await requireRecipes(import.meta.filename, "apps")
  : "needs root: another user for the program";

const credentials: Readonly<Record<string, { namespace: string; actions: string[] }>> = {
  developer: { namespace: "o-1", actions: ["pull", "push", "delete"] },
  machine: { namespace: "o-1", actions: ["pull"] },
  foreign: { namespace: "o-2", actions: ["pull", "push", "delete"] },
};
const mib = 1 << 20;

describe.skipIf(skipped !== undefined)("the registry of images", () => {
  let directory: string;
  let host: string;
  let ca: string;
  let program: RegistryProgram;
  let server: RegistryServer;
  const failures: unknown[] = [];
  const log = { ...silentLog, error: (_: string, fields?: object) => void failures.push(fields) };
  let run: (argv: readonly string[]) => Promise<string>;

  async function accessOf(authorization: string) {
    const [user = ""] = Buffer.from(authorization.split(" ")[1] ?? "", "base64")
      .toString()
      .split(":");
    const found = credentials[user];
    const decided = found === undefined ? { refusal: "unknown" } : { subject: user, ...found };
    return create(AccessResponseSchema, decided);
  }

  async function start(): Promise<void> {
    const data = join(directory, "data");
    const [port = 0] = await freePorts(1);
    const { cert, key } = await createTestCertificate();
    const tokens = await createAccessTokens(Date.now);
    [ca, host] = [cert, `127.0.0.1:${port}`];
    writeFileSync(join(directory, "authorities", "ca.crt"), cert);
    program = createRegistryProgram({
      directory: data,
      uid: testUid,
      imagesDir: imagesDirectory(process.env),
      certificate: tokens.certificate,
      environment: process.env,
      log,
    });
    server = await startRegistryServer({
      listen: [{ host: "127.0.0.1", port }],
      identity: { key, certificate: cert },
      clients: createClientAddresses({ trustedProxies: [], balancers: [] }),
      tokens,
      accessOf,
      program,
      usage: createRepositoryUsage(imagesBelow(data), 8 * mib, Date.now),
      now: Date.now,
      monotonicMs: systemClock.monotonicMs,
      log,
    });
  }

  beforeAll(async () => {
    const image = findImage(imagesDirectory(process.env), "apps");
    if (image === undefined) throw new Error("there is no image of apps");
    directory = programDirectory("holdfast-registry");
    mkdirSync(join(directory, "authorities"));
    run = (argv) => runLaunch(inImage(image.root, { argv, uid: testUid, binds: [directory], asRoot }));
    await start();
    // A small image, and two that do not fit together within the organization's limit.
    const sizes = { small: 1_000, large: 7 * mib, other: 4 * mib };
    const layout = join(directory, "layout");
    for (const [name, bytes] of Object.entries(sizes)) {
      const [tree, file] = [join(directory, name), join(directory, name, "file")];
      mkdirSync(tree);
      writeFileSync(file, randomBytes(bytes));
      for (const path of [tree, file]) chownSync(path, testUid, testUid);
    }
    chownSync(directory, testUid, testUid);
    await run(["umoci", "init", "--layout", layout]);
    for (const name of Object.keys(sizes)) {
      await run(["umoci", "new", "--image", `${layout}:${name}`]);
      await run(["umoci", "insert", "--rootless", "--image", `${layout}:${name}`, join(directory, name), "/"]);
    }
  }, 120_000);
  afterAll(async () => {
    await server?.close();
    await program?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  const skopeo = (...words: string[]) => run(["skopeo", "--insecure-policy", ...words]);
  const options = (side: "src" | "dest", user: string) => [
    `--${side}-cert-dir=${join(directory, "authorities")}`,
    `--${side}-creds=${user}:x`,
  ];
  const push = (user: string, name: string, to: string) =>
    skopeo(
      "copy",
      "--quiet",
      "--retry-times=0",
      ...options("dest", user),
      `--digestfile=${join(directory, "digest")}`,
      `oci:${join(directory, "layout")}:${name}`,
      `docker://${host}/${to}`,
    ).then(() => readFileSync(join(directory, "digest"), "utf8"));
  const pull = (user: string, from: string) =>
    skopeo(
      "copy",
      "--quiet",
      ...options("src", user),
      `docker://${host}/${from}`,
      `oci:${join(directory, "pulled")}:${user}`,
    );
  /** Status and body of a request without skopeo. */
  const call = (method: string, path: string, headers: Record<string, string> = {}, body = "") => {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; challenge: string; text: string }>();
    const sent = request(`https://${host}${path}`, { method, headers, ca, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.once("end", () =>
        resolve({ status: response.statusCode ?? 0, challenge: response.headers["www-authenticate"] ?? "", text }),
      );
    });
    sent.once("error", reject);
    sent.end(body);
    return promise;
  };

  test("an image that is pushed by its tag is pulled by its digest, by a credential that only pulls", async () => {
    const digest = await push("developer", "small", "o-1/shop:1");
    expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    await pull("machine", `o-1/shop@${digest}`);
    await expect(push("machine", "small", "o-1/shop:2")).rejects.toThrow(/denied|unauthorized|authentication required/);
  });

  test("repositories of another organization can be neither read nor written", async () => {
    await expect(pull("foreign", "o-1/shop:1")).rejects.toThrow(/denied|unauthorized|authentication required/);
    await expect(push("foreign", "small", "o-1/shop:1")).rejects.toThrow(/denied|unauthorized|authentication required/);
    await expect(push("nobody", "small", "o-1/shop:1")).rejects.toThrow(
      /unauthorized|authentication required|invalid username/,
    );
    await push("foreign", "small", "o-2/shop:1");
  });

  test("callers without a token get the token endpoint, and bad tokens are refused", async () => {
    const { status, challenge } = await call("GET", "/v2/");
    expect(status).toBe(401);
    expect(challenge).toMatch(
      new RegExp(`^Bearer realm="https://${host.replaceAll(".", "\\.")}/auth/token/?",service="holdfast-registry"`),
    );
    for (const authorization of ["Bearer x", "Bearer a.b.c", "Basic ZGV2ZWxvcGVyOng="])
      expect((await call("GET", "/v2/o-1/shop/manifests/1", { authorization })).status).toBe(401);
    expect((await call("GET", "/v2/_catalog")).status).toBe(401);
    expect((await call("GET", "/debug/vars")).status).toBe(404);
    expect((await call("POST", "/auth/token")).status).toBe(405);
    expect((await call("POST", "/v2/o-1/shop/blobs/uploads/", {}, "x".repeat(100_000))).status).toBe(401);
  });

  test("names that every object inherits are unknown", async () => {
    failures.splice(0);
    const authorization = `Basic ${Buffer.from("developer:x").toString("base64")}`;
    for (const word of inheritedNames) {
      expect((await call("GET", `/${word}`)).status, word).toBe(404);
      expect((await call("PROPFIND", `/v2/${word}/manifests/1`)).status, word).toBeGreaterThanOrEqual(400);
      expect((await call("GET", `/auth/token?scope=${word}`)).status, word).toBe(401);
      const scope = encodeURIComponent(`${word}:o-1/${word}:${word}`);
      const { status, text } = await call("GET", `/auth/token?${word}=1&scope=${scope}`, { authorization });
      expect(status, word).toBe(200);
      const [, body = ""] = (JSON.parse(text) as { token: string }).token.split(".");
      expect(JSON.parse(Buffer.from(body, "base64url").toString())).toMatchObject({ access: [] });
    }
    expect(failures).toEqual([]);
  });

  test("images beyond the organization's limit are refused, until others are deleted", async () => {
    const digest = await push("developer", "large", "o-1/large:1");
    await expect(push("developer", "other", "o-1/other:1")).rejects.toThrow(/maximum size|507/);
    const authorization = `Basic ${Buffer.from("developer:x").toString("base64")}`;
    const { text } = await call("GET", "/auth/token?scope=repository:o-1/a/b:pull,push", { authorization });
    const bearer = { authorization: `Bearer ${(JSON.parse(text) as { token: string }).token}` };
    // Also by another spelling of the path.
    for (const path of ["/v2/o-1/a/b/blobs/uploads/", "/v2/o-1/a%2Fb/blobs/uploads/"]) {
      const { status } = await call("POST", `${path}?digest=sha256:${"0".repeat(64)}`, bearer, "x".repeat(2 * mib));
      expect(status, path).toBe(507);
    }
    await push("foreign", "other", "o-2/other:1");

    await skopeo(
      "delete",
      `--cert-dir=${join(directory, "authorities")}`,
      "--creds=developer:x",
      `docker://${host}/o-1/large@${digest}`,
    );
    // The next start removes the layers.
    await server.close();
    await program.stop();
    await start();
    await push("developer", "other", "o-1/other:1");
    await pull("machine", "o-1/shop:1");
  });
});
