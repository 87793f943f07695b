import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import type { FilesFixture } from "./files-service.ts";
import type { KeyJson } from "./key.ts";

/** A tree of files for clients that copy directories: small ones, unusual names, and one that takes several parts. */
export interface LocalTree {
  readonly directory: string;
  /** Paths of the files below it, sorted. */
  readonly paths: readonly string[];
}

const largeBytes = 12 << 20;

export function createTree(media: FilesFixture, name: string): LocalTree {
  const directory = join(media.directory, name);
  const contents: readonly (readonly [string, string | Buffer])[] = [
    ["a+b & c.txt", "plus and ampersand"],
    ["empty", ""],
    ["large.bin", randomBytes(largeBytes)],
    ["ü ö/日本 (1).txt", "other letters"],
    ...Array.from({ length: 30 }, (_, number) => [`deep/${number % 5}/${number}.txt`, `${number}`] as const),
  ];
  for (const [path, content] of contents) {
    mkdirSync(join(directory, path, ".."), { recursive: true });
    writeFileSync(join(directory, path), content);
  }
  return { directory, paths: contents.map(([path]) => path).toSorted() };
}

/** A directory that programs of the image may write to. */
export function createTarget(media: FilesFixture, name: string): string {
  const directory = join(media.directory, name);
  mkdirSync(directory);
  chmodSync(directory, 0o777);
  return directory;
}

/** Runs rclone with a remote `media:` for the key; `style` is where the bucket stands in requests. */
export function rclone(media: FilesFixture, key: KeyJson, style: "path" | "host") {
  const { endpoint, region } = media.connection;
  const env = {
    RCLONE_CONFIG: join(media.directory, "rclone.conf"),
    RCLONE_CA_CERT: join(media.directory, "ca.pem"),
    // Its AWS library refuses to start with this setting of other clients.
    AWS_CA_BUNDLE: "",
    RCLONE_CONFIG_MEDIA_TYPE: "s3",
    RCLONE_CONFIG_MEDIA_PROVIDER: "Other",
    RCLONE_CONFIG_MEDIA_ENDPOINT: endpoint,
    RCLONE_CONFIG_MEDIA_REGION: region,
    RCLONE_CONFIG_MEDIA_ACCESS_KEY_ID: key.access_key_id,
    RCLONE_CONFIG_MEDIA_SECRET_ACCESS_KEY: key.secret_access_key ?? "",
    RCLONE_CONFIG_MEDIA_FORCE_PATH_STYLE: String(style === "path"),
    RCLONE_S3_UPLOAD_CUTOFF: "5Mi",
    RCLONE_S3_CHUNK_SIZE: "5Mi",
    RCLONE_RETRIES: "1",
  };
  return (...args: readonly string[]) => media.runTool(["rclone", ...args], env);
}

/** Runs s3cmd with the key, with the bucket in the host name. */
export function s3cmd(media: FilesFixture, { access_key_id: id, secret_access_key: secret }: KeyJson) {
  const host = new URL(media.connection.endpoint).host;
  const file = join(media.directory, `s3cmd-${id}.cfg`);
  const settings = {
    access_key: id,
    secret_key: secret,
    host_base: host,
    host_bucket: `%(bucket)s.${host}`,
    bucket_location: media.connection.region,
    ca_certs_file: join(media.directory, "ca.pem"),
    use_https: "True",
    multipart_chunk_size_mb: "5",
    // Owners of files have no numbers in the namespace of the test.
    preserve_attrs: "False",
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  writeFileSync(file, `[default]\n${lines.join("\n")}\n`);
  return (...args: readonly string[]) => media.runTool(["s3cmd", "-c", file, ...args], { LC_ALL: "C.UTF-8" });
}
