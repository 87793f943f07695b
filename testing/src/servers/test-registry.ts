import { mkdirSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { createClientAddresses } from "@holdfast/common/client-address.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { imagesDirectory } from "@holdfast/image/node-image.ts";
import { AccessResponseSchema } from "@holdfast/proto/holdfast/registry/v1/registry_pb.ts";
import { createAccessTokens } from "@holdfast/registry/access-token.ts";
import { openImageStorage, type StorageSettings } from "@holdfast/registry/image-storage.ts";
import { createRegistryProgram } from "@holdfast/registry/registry-program.ts";
import { startRegistryServer } from "@holdfast/registry/registry-server.ts";
import { createRepositoryUsage } from "@holdfast/registry/repository-usage.ts";
import { sharedKeysOf } from "@holdfast/registry/shared-keys.ts";
import { createTestCertificate } from "../controller/test-certificate.ts";
import { freePorts } from "../platform/free-ports.ts";
import { testUid } from "../platform/platform-software.ts";

/** A registry of the platform with the real docker-registry; a table decides about its callers. */
export interface TestRegistry {
  /** host:port */
  readonly host: string;
  /** Directory with the authority of its certificate, for clients. */
  readonly authorities: string;
  /** Errors that it logged. */
  readonly failures: unknown[];
  call(method: string, path: string, headers?: Record<string, string>, body?: string | Buffer): Promise<RegistryAnswer>;
  /** Headers with a token of the user for scopes. */
  bearer(user: string, scope: string): Promise<{ authorization: string }>;
  /** Stops docker-registry, and sweeps its images; false if another registry with the same images is in use. */
  sweep(): Promise<boolean>;
  stop(): Promise<void>;
}

export interface RegistryAnswer {
  readonly status: number;
  readonly challenge: string;
  readonly location: string;
  readonly text: string;
}

export interface TestRegistryOptions {
  /** Directory of the test, below which the registry has its own, by its name. */
  readonly directory: string;
  readonly name?: string;
  readonly objects: StorageSettings;
  /** Namespaces and rights of users. */
  readonly users: Readonly<Record<string, { namespace: string; actions: string[] }>>;
  readonly organizationBytes?: number;
  /** Digests that deployments have. */
  readonly needed?: ReadonlySet<string>;
  readonly now?: () => number;
}

export async function startTestRegistry(options: TestRegistryOptions): Promise<TestRegistry> {
  const { directory, name = "data", objects, users, organizationBytes = 1 << 30, needed, now = Date.now } = options;
  const failures: unknown[] = [];
  const log = { ...silentLog, error: (_: string, fields?: object) => void failures.push(fields) };
  const [port = 0] = await freePorts(1);
  const host = `127.0.0.1:${port}`;
  const { cert, key } = await createTestCertificate();
  const authorities = join(directory, `${name}-authorities`);
  mkdirSync(authorities, { recursive: true });
  writeFileSync(join(authorities, "ca.crt"), cert);
  const storage = await openImageStorage(objects, { uid: testUid, now: Date.now, log });
  const keys = sharedKeysOf(storage.secret);
  const tokens = await createAccessTokens(keys.tokens, Date.now);
  const program = createRegistryProgram({
    directory: join(directory, name),
    uid: testUid,
    imagesDir: imagesDirectory(process.env),
    storage,
    uploadSecret: keys.uploads,
    neededOf: async (digests) => digests.filter((each) => needed?.has(each)),
    now,
    certificate: tokens.certificate,
    environment: process.env,
    log,
  });
  const server = await startRegistryServer({
    listen: [{ host: "127.0.0.1", port }],
    identity: { key, certificate: cert },
    clients: createClientAddresses({ trustedProxies: [], balancers: [] }),
    tokens,
    async accessOf(authorization) {
      const [user = ""] = Buffer.from(authorization.split(" ")[1] ?? "", "base64")
        .toString()
        .split(":");
      const found = users[user];
      return create(AccessResponseSchema, found === undefined ? { refusal: "unknown" } : { subject: user, ...found });
    },
    program,
    usage: createRepositoryUsage(storage.objects, organizationBytes, Date.now),
    now: Date.now,
    monotonicMs: systemClock.monotonicMs,
    log,
  });

  const call: TestRegistry["call"] = (method, path, headers = {}, body = "") => {
    const { promise, resolve, reject } = Promise.withResolvers<RegistryAnswer>();
    const sent = request(`https://${host}${path}`, { method, headers, ca: cert, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      const { "www-authenticate": challenge = "", location = "" } = response.headers;
      response.once("end", () => resolve({ status: response.statusCode ?? 0, challenge, location, text }));
    });
    sent.once("error", reject);
    sent.end(body);
    return promise;
  };

  return {
    host,
    authorities,
    failures,
    call,
    async bearer(user, scope) {
      const authorization = `Basic ${Buffer.from(`${user}:x`).toString("base64")}`;
      const { text } = await call("GET", `/auth/token?scope=${encodeURIComponent(scope)}`, { authorization });
      return { authorization: `Bearer ${(JSON.parse(text) as { token: string }).token}` };
    },
    async sweep() {
      await program.stop();
      return program.sweep();
    },
    async stop() {
      await server.close();
      await program.stop();
      await storage.close();
    },
  };
}
