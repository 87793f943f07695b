import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { ensureTree } from "@holdfast/image/build-tree.ts";
import { ImageImpossible } from "@holdfast/image/image-impossible.ts";
import { inImage } from "@holdfast/image/in-image.ts";
import { imagesDirectory, makeImageScript } from "@holdfast/image/node-image.ts";
import { asRoot, testUid } from "../platform/platform-software.ts";
import { startTemporaryProcess, type TemporaryProcess } from "../platform/temporary-process.ts";

/** Debian's programs that test the platform's output, in a separate file tree that is built once and cached. */
export interface TestImage {
  /** Runs a program of the image to its end; resolves with its output, rejects with the output when it fails. */
  run(argv: readonly string[], binds: readonly string[], env?: Readonly<Record<string, string>>): Promise<string>;
  /** Command line that runs a program of the image. */
  command(
    argv: readonly string[],
    binds: readonly string[],
  ): { readonly command: string; readonly args: readonly string[] };
  /** Starts a program of the image; the directories have the same path inside. Resolves once it printed `ready`. */
  start(argv: readonly string[], binds: readonly string[], ready: RegExp): Promise<TemporaryProcess>;
}

const execute = promisify(execFile);
const packagesOf = {
  apps: ["util-linux", "mount", "docker-registry", "apache2-utils"],
  webhooks: ["util-linux", "mount", "nginx", "webhook"],
  queues: [
    "util-linux",
    "mount",
    "pgbouncer",
    "postgresql-client",
    "python3-psycopg2",
    "libpostgresql-jdbc-java",
    "default-jdk-headless",
  ],
  metrics: ["util-linux", "mount", "prometheus", "victoria-metrics"],
  models: ["util-linux", "mount", "llama.cpp-tools"],
  pages: ["util-linux", "mount", "chromium-headless-shell", "fonts-dejavu-core"],
  signIn: ["util-linux", "mount", "apache2", "libapache2-mod-auth-openidc", "python3-authlib", "python3-requests"],
  quickStarts: [
    "util-linux",
    "mount",
    "postgresql-client",
    "python3-psycopg",
    "ruby-pg",
    "php-cli",
    "php-pgsql",
    "libpostgresql-jdbc-java",
    "default-jdk-headless",
  ],
  files: ["util-linux", "mount", "python3-boto3"],
  // Packages from pytest on run ceph/s3-tests.
  filesClients: [
    "util-linux",
    "mount",
    "diffutils",
    "rclone",
    "s3cmd",
    "python3-boto3",
    "python3-pytest",
    "python3-pytest-timeout",
    "python3-munch",
    "python3-requests",
    "python3-isodate",
    "python3-tz",
    "python3-yaml",
    "python3-httplib2",
    "python3-lxml",
  ],
  mysql: ["util-linux", "mount", "python3-pymysql"],
  // The installation of netbase creates /etc/hosts, which `withHosts` replaces.
  sysbench: ["util-linux", "mount", "netbase", "sysbench"],
  tsql: ["util-linux", "mount", "freetds-bin"],
  failovers: ["util-linux", "mount", "bind9-dnsutils", "python3-psycopg2"],
  load: ["util-linux", "mount", "wrk"],
} as const;

const usualRelease = "trixie";
/** Debian releases of the packages, for programs that changed after trixie or that trixie lacks. */
const releasesOf: Readonly<Record<string, string>> = { metrics: "sid", models: "sid" };

/**
 * The image, or the reason why this host cannot have it: it takes apt with a Debian mirror, and mmdebstrap or root to
 * install that.
 */
export async function testImage(suite: keyof typeof packagesOf): Promise<TestImage | string> {
  const packages = packagesOf[suite];
  const release = releasesOf[suite] ?? usualRelease;
  const digest = createHash("sha256")
    .update(packages.join() + readFileSync(makeImageScript, "utf8"))
    .digest("hex");
  const root = join(imagesDirectory(process.env), `judges-${release}-${digest.slice(0, 16)}`);
  try {
    await ensureTree({ root, suite: release, packages }, { progress: (line) => console.error(line) });
  } catch (error) {
    if (error instanceof ImageImpossible) return error.message;
    throw error;
  }
  return {
    async run(argv, binds, env = {}) {
      const { command, args } = inImage(root, { argv, uid: testUid, binds, asRoot });
      const { stdout } = await execute(command, args, { cwd: "/", env: { ...process.env, ...env } });
      return stdout;
    },
    command: (argv, binds) => inImage(root, { argv, uid: testUid, binds, asRoot }),
    start: (argv, binds, ready) => startTemporaryProcess(inImage(root, { argv, uid: testUid, binds, asRoot }), ready),
  };
}
