import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { S3Client } from "@aws-sdk/client-s3";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import type { TestImage } from "@holdfast/testing/engines/test-image.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { argumentsAndEnvironment, findBelow } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { GiveUp, waitUntil } from "@holdfast/testing/wait-until.ts";
import { expect } from "vitest";

export interface FilesConnectionJson {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly host: string;
  readonly port: number;
  readonly ca_certificate: string;
}

export interface KeyJson {
  readonly id: string;
  readonly name: string;
  readonly access: string;
  readonly access_key_id: string;
  readonly secret_access_key?: string | null;
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
  /** Starts a scenario that reads its input. */
  start(key: KeyJson, scenario: string): ChildProcess;
  /** Pids of the servers. */
  servers(): number[];
  remove(): void;
}

const settleMs = 120_000;

/** Creates a files service; resolves when it runs. */
export async function createFiles(
  platform: Platform,
  image: TestImage,
  name: string,
  body: Record<string, unknown> = {},
): Promise<FilesFixture> {
  const { rest } = platform;
  const request = { name, plan_name: "tier-1", storage_size_gb: 1, ...body };
  const { id } = expectStatus(await rest.post<ServiceJson>("/files-services", request), 202).json;
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

  const environment = ({ access_key_id: id, secret_access_key: secret }: KeyJson) => ({
    S3_ENDPOINT: connection.endpoint,
    S3_BUCKET: connection.bucket,
    S3_REGION: connection.region,
    S3_ACCESS_KEY: id,
    S3_SECRET: secret ?? "",
    AWS_CA_BUNDLE: join(directory, "ca.pem"),
    SSL_CERT_FILE: join(directory, "ca.pem"),
  });
  /** Resolves names by a file of hosts over the image's own. */
  const argv = (scenario: string) => [
    "/usr/bin/unshare",
    "--user",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
    `mount --bind ${join(directory, "hosts")} /etc/hosts && exec "$@"`,
    "sh",
    "python3",
    join(directory, "s3-client.py"),
    scenario,
  ];
  return {
    path,
    get,
    settled,
    async createKey(name, access = "readwrite") {
      return expectStatus(await rest.post<KeyJson>(path("/keys"), { name, access }), 201).json;
    },
    async run<T>(key: KeyJson, scenario: string) {
      return JSON.parse(await image.run(argv(scenario), [directory], environment(key))) as T;
    },
    bucket: connection.bucket,
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
    start(key, scenario) {
      const { command, args } = image.command(argv(scenario), [directory]);
      return spawn(command, args, {
        cwd: "/",
        env: { ...process.env, ...environment(key) },
        stdio: ["pipe", "pipe", "inherit"],
      });
    },
    servers: () =>
      platform
        .processes()
        .machines.flatMap(({ launcher }) => findBelow(launcher))
        .filter((pid) => argumentsAndEnvironment(pid).cmdline.split("\0")[0]?.endsWith("/versitygw") === true),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
