import { spawn } from "node:child_process";
import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { S3Client } from "@aws-sdk/client-s3";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { withHosts } from "@holdfast/testing/engines/client-files.ts";
import type { TestImage } from "@holdfast/testing/engines/test-image.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { argumentsAndEnvironment, findBelow, killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { GiveUp, waitUntil } from "@holdfast/testing/wait-until.ts";
import { expect } from "vitest";
import type { KeyJson } from "./key.ts";
import { createS3Session } from "./s3-session.ts";

export interface FilesConnectionJson {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly host: string;
  readonly port: number;
  readonly ca_certificate: string;
}

/** A files service on a platform, and boto3 as its client. */
export interface FilesFixture {
  path(rest?: string): string;
  get(): Promise<ServiceJson>;
  settled(status: string): Promise<ServiceJson>;
  createKey(name: string, access?: string): Promise<KeyJson>;
  /** Runs a scenario of `s3-client.py` with the key, and returns its result. */
  run<T>(key: KeyJson, scenario: string): Promise<T>;
  /** The client of the AWS SDK for JavaScript, which has the bucket in the host name by default. */
  sdkClient(key: KeyJson): S3Client;
  readonly bucket: string;
  readonly connection: FilesConnectionJson;
  /** Directory that programs of `runTool` see, with the authority as `ca.pem`. */
  readonly directory: string;
  /** Runs a program of the image, which resolves the names of the service; its output. */
  runTool(argv: readonly string[], env?: Readonly<Record<string, string>>): Promise<string>;
  /** Resolves when the key is accepted, with what boto3 read of its first object. */
  accepted(key: KeyJson): Promise<FirstObject>;
  /** Kills both servers at the same time; resolves when both run again. */
  killServers(): Promise<void>;
  remove(): void;
}

/** The result of the scenario `first`. */
export interface FirstObject {
  readonly body: string;
  readonly type: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly range: string;
  readonly buckets: readonly string[];
}

const settleMs = 120_000;
const acceptedMs = 30_000;

/** Creates a files service; resolves when it runs. */
export async function createFiles(
  platform: Platform,
  image: TestImage,
  name: string,
  body: Record<string, unknown> = {},
): Promise<FilesFixture> {
  const request = { name, plan_name: "tier-1", storage_size_gb: 1, ...body };
  const { id } = expectStatus(await platform.rest.post<ServiceJson>("/files-services", request), 202).json;
  return openFiles(platform, image, id);
}

/** A files service that was created; resolves when it runs. */
export async function openFiles(platform: Platform, image: TestImage, id: string): Promise<FilesFixture> {
  const { rest } = platform;
  const path = (more = "") => `/files-services/${id}${more}`;
  const get = async () => expectStatus(await rest.get<ServiceJson>(path()), 200).json;
  const settled = (status: string) =>
    waitUntil(
      `the files service is ${status}`,
      async () => {
        const service = await get();
        if (service.status === "Error" && status !== "Error") throw new GiveUp(JSON.stringify(service));
        return service.status === status && service.operation === null ? service : undefined;
      },
      { withinMs: settleMs, everyMs: 30 },
    );
  await settled("Running");
  const connection = expectStatus(await rest.get<FilesConnectionJson>(path("/connection")), 200).json;
  const directory = mkdtempSync(join(tmpdir(), "holdfast-files-"));
  chmodSync(directory, 0o755);
  writeFileSync(join(directory, "ca.pem"), connection.ca_certificate);
  const address = await addressOf(platform, connection.host);
  const bucketHost = `${connection.bucket}.${connection.host}`;
  expect(await addressOf(platform, bucketHost)).toBe(address);
  writeFileSync(join(directory, "hosts"), `${address} ${connection.host} ${bucketHost}\n`);
  copyFileSync(join(import.meta.dirname, "s3-client.py"), join(directory, "s3-client.py"));

  const environment = {
    S3_ENDPOINT: connection.endpoint,
    S3_BUCKET: connection.bucket,
    S3_REGION: connection.region,
    AWS_CA_BUNDLE: join(directory, "ca.pem"),
    SSL_CERT_FILE: join(directory, "ca.pem"),
  };
  const withNames = (argv: readonly string[]) => withHosts(join(directory, "hosts"), argv);
  /** Pids of the servers of this service. */
  const servers = () =>
    platform
      .processes()
      .machines.flatMap(({ launcher }) => findBelow(launcher))
      .filter((pid) => {
        const [program = "", ...args] = argumentsAndEnvironment(pid).cmdline.split("\0");
        return program.endsWith("/versitygw") && args.includes(connection.bucket);
      });
  const session = createS3Session(() => {
    const { command, args } = image.command(withNames(["python3", join(directory, "s3-client.py")]), [directory]);
    return spawn(command, args, {
      cwd: "/",
      env: { ...process.env, ...environment },
      stdio: ["pipe", "pipe", "inherit"],
    });
  });
  return {
    path,
    get,
    settled,
    async createKey(name, access = "readwrite") {
      return expectStatus(await rest.post<KeyJson>(path("/keys"), { name, access }), 201).json;
    },
    run: session.run,
    bucket: connection.bucket,
    connection,
    directory,
    runTool: (argv, env = {}) => image.run(withNames(argv), [directory], { ...environment, ...env }),
    sdkClient: ({ access_key_id: accessKeyId, secret_access_key: secretAccessKey }) =>
      new S3Client({
        endpoint: connection.endpoint,
        region: connection.region,
        credentials: { accessKeyId, secretAccessKey: secretAccessKey ?? "" },
        requestHandler: {
          httpsAgent: {
            ca: connection.ca_certificate,
            lookup: (_name, options, callback) =>
              options.all === true ? callback(null, [{ address, family: 4 }]) : callback(null, address, 4),
          },
        },
      }),
    accepted: (key) =>
      waitUntil("the key is accepted", () => session.run<FirstObject>(key, "first").catch(() => undefined), {
        withinMs: acceptedMs,
      }),
    async killServers() {
      const before = servers();
      expect(before.length).toBe(2);
      for (const pid of before) killImmediately(pid);
      await waitUntil("both servers run again", () => {
        const now = servers();
        return now.length === 2 && now.every((pid) => !before.includes(pid));
      });
    },
    remove() {
      session.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
