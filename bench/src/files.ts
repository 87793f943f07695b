import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import type { LookupFunction } from "node:net";
import { parseArgs } from "node:util";
import { signUrl, type StoreKey } from "@holdfast/common/objects/signed-url.ts";
import { createFiles } from "@holdfast/test/system/files/files-service.ts";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import { testImage } from "@holdfast/testing/engines/test-image.ts";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { s3Programs } from "@holdfast/testing/servers/s3-program.ts";
import { startS3Server } from "@holdfast/testing/servers/s3-server.ts";
import { Pool } from "undici";
import { median, ms, print, ratios, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";

// Objects of a files service against the same S3 server without a platform: both with TLS and one certificate, both on
// disks of this host. URLs are signed in advance, so that the client has nothing to do but HTTP.
const { values } = parseArgs({
  options: { pairs: { type: "string", default: "5" }, seconds: { type: "string", default: "2" } },
});
const [pairs, seconds] = [Number(values.pairs), Number(values.seconds)];
const objects = 50;
const hourS = 3_600;
const sizes = [
  { name: "4 KB", body: randomBytes(4 << 10) },
  { name: "1 MB", body: randomBytes(1 << 20) },
] as const;
const methods = ["PUT", "GET"] as const;
const clients = [1, 8] as const;

interface Arm {
  readonly pool: Pool;
  /** Paths with signatures, by method and size. */
  paths(method: string, size: string): readonly string[];
}

async function openArm(bucketUrl: string, key: StoreKey, ca: string, lookup?: LookupFunction): Promise<Arm> {
  const now = new Date();
  const signed = new Map<string, string[]>();
  for (const method of methods) {
    for (const { name } of sizes) {
      const urls = Array.from({ length: objects }, (_, number) => `${bucketUrl}/${name.replace(" ", "")}/${number}`);
      const paths = urls.map(async (url) => {
        const { pathname, search } = new URL(await signUrl({ method, url, headers: {} }, key, hourS, now));
        return `${pathname}${search}`;
      });
      signed.set(`${method} ${name}`, await Promise.all(paths));
    }
  }
  const connect = { ca, ...(lookup !== undefined && { lookup }) };
  return {
    pool: new Pool(new URL(bucketUrl).origin, { connections: Math.max(...clients), connect }),
    paths: (method, size) => signed.get(`${method} ${size}`) ?? [],
  };
}

interface Measured {
  readonly perSecond: number;
  readonly p50Ms: number;
}

/** Throws if a response is not 200, or has other bytes than were put. */
async function measure(
  { pool, paths }: Arm,
  method: (typeof methods)[number],
  { name, body }: (typeof sizes)[number],
  concurrent: number,
): Promise<Measured> {
  const all = paths(method, name);
  const durations: number[] = [];
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1_000;
  let next = 0;
  const run = async () => {
    while (performance.now() < endsAt) {
      const path = all[(next += 1) % objects] ?? "";
      const at = performance.now();
      const response = await pool.request({ method, path, ...(method === "PUT" && { body }) });
      const received = Buffer.from(await response.body.arrayBuffer());
      durations.push(performance.now() - at);
      if (response.statusCode !== 200 || (method === "GET" && !received.equals(body)))
        throw new Error(`${method} of ${name}: ${response.statusCode} ${received.toString("utf8").slice(0, 300)}`);
    }
  };
  await Promise.all(Array.from({ length: concurrent }, run));
  return { perSecond: (durations.length * 1_000) / (performance.now() - startedAt), p50Ms: median(durations) };
}

printHost();
const image = await testImage("files");
if (typeof image === "string") throw new Error(image);
const [program] = await s3Programs();
if (program === undefined) throw new Error("there is no S3 server");
const server = await startS3Server(program);
const platform = await startPlatform();
const media = await createFiles(platform, image, "media", { storage_size_gb: 2 });
try {
  const created = await media.createKey("bench");
  await media.accepted(created);
  const { bucket, connection } = media;
  const address = await addressOf(platform, connection.host);
  const lookup: LookupFunction = (_name, options, callback) =>
    options.all === true ? callback(null, [{ address, family: 4 }]) : callback(null, address, 4);
  const ofService = { id: created.access_key_id, secret: created.secret_access_key ?? "", region: connection.region };
  const bareUrl = new URL(server.url(""));
  const bareKey = JSON.parse(readFileSync(server.keyFile, "utf8")) as Pick<StoreKey, "id" | "secret">;
  const arms = {
    holdfast: await openArm(`${connection.endpoint}/${bucket}`, ofService, connection.ca_certificate, lookup),
    bare: await openArm(
      `${bareUrl.searchParams.get("endpoint")}/${bareUrl.host}`,
      { ...bareKey, region: "us-east-1" },
      readFileSync(server.caFile, "utf8"),
    ),
  };
  for (const size of sizes) {
    for (const method of methods) {
      for (const concurrent of clients) {
        const [own, peer]: [Measured[], Measured[]] = [[], []];
        // The first pair is a warm-up.
        for (let pair = 0; pair <= pairs; pair += 1) {
          const order = pair % 2 === 0 ? ([arms.holdfast, arms.bare] as const) : ([arms.bare, arms.holdfast] as const);
          for (const arm of order) {
            const figure = await measure(arm, method, size, concurrent);
            if (pair > 0) (arm === arms.holdfast ? own : peer).push(figure);
          }
        }
        const [a, b] = [own, peer].map((each) => each.map(({ perSecond }) => perSecond)) as [number[], number[]];
        const ratio = ratios(a, b);
        print(
          `${method} of ${size.name}, ${concurrent} concurrently: per second; bare`,
          `${median(a).toFixed(0)}; ${median(b).toFixed(0)}`,
        );
        print("  ratio (min - max)", `${times(ratio.median)} (${times(ratio.min)} - ${times(ratio.max)})`, ">= 0.9x");
        print(
          "  p50; bare",
          `${ms(median(own.map(({ p50Ms }) => p50Ms)))}; ${ms(median(peer.map(({ p50Ms }) => p50Ms)))}`,
        );
      }
    }
  }
  for (const { pool } of Object.values(arms)) await pool.close();
} finally {
  media.remove();
  await platform.remove();
  await server.remove();
}
