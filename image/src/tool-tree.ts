import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { chmod, copyFile, mkdir, utimes } from "node:fs/promises";
import { join } from "node:path";
import { lookUp } from "@holdfast/common/look-up.ts";
import { runProgram } from "@holdfast/common/run-program.ts";
import { artifactMaxBytes } from "./artifact-archive.ts";
import { inImage } from "./in-image.ts";
import { ensureTree, type Progress } from "./build-tree.ts";
import { makeImageScript } from "./node-image.ts";

/** Debian's build and download tools in a separate tree, never tools of the host. */
export interface ToolTree {
  /** Runs a tool as an unprivileged user with the network of the host, and returns its output. */
  run(argv: readonly string[], env: Readonly<Record<string, string>>): Promise<string>;
  /** PEM of the authorities that this host trusts, for the tools. */
  readonly trusted: string;
}

export interface FetchOptions extends Progress {
  readonly imagesDir: string;
}

export interface ToolOptions extends FetchOptions {
  /** User that runs the tools; not 0. */
  readonly uid: number;
  readonly asRoot: boolean;
}

interface Tools {
  readonly suite: string;
  readonly packages: readonly string[];
}

const certificates = "/etc/ssl/certs/ca-certificates.crt";
const maxOutputBytes = 16 << 20;
/** Settings of the host's network, which tools follow. */
const networkVariables = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

/**
 * The tree of these packages, built if it is missing. `work` is a directory that the tools may write to, at the same
 * path inside; it gets the tools' user as its owner. Throws ImageImpossible.
 */
export async function openToolTree({ suite, packages }: Tools, work: string, options: ToolOptions): Promise<ToolTree> {
  const { imagesDir, uid, asRoot, signal } = options;
  const root = join(imagesDir, `tools-${suite}-${toolDigest(packages, packages)}`);
  await ensureTree({ root, suite, packages }, options);
  // A new time: sweeps remove a tree that was unused for weeks.
  const now = new Date();
  await utimes(root, now, now).catch(() => undefined);
  await chmod(work, 0o755);
  for (const directory of ["home", "tmp"]) await mkdir(join(work, directory), { recursive: true });
  // The tree has neither this host's resolver nor the authorities that this host trusts.
  await copyFile("/etc/resolv.conf", join(root, "etc", "resolv.conf")).catch(() => undefined);
  const trusted = join(work, "trusted.pem");
  const hostCertificates = process.env["SSL_CERT_FILE"] ?? certificates;
  await copyFile(existsSync(hostCertificates) ? hostCertificates : join(root, certificates), trusted);
  if (asRoot) await runProgram("chown", ["-R", `${uid}:${uid}`, work]);
  return {
    trusted,
    async run(argv, env) {
      // A tool that receives a larger file fails.
      const limited = ["prlimit", `--fsize=${artifactMaxBytes}`, ...argv];
      const { command, args } = inImage(root, { argv: limited, uid, binds: [work], asRoot });
      const { stdout } = await runProgram(command, args, {
        env: {
          ...hostSettings(networkVariables),
          PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
          HOME: join(work, "home"),
          TMPDIR: join(work, "tmp"),
          SSL_CERT_FILE: trusted,
          ...env,
        },
        cwd: "/",
        maxBuffer: maxOutputBytes,
        ...(signal && { signal }),
      });
      return stdout;
    },
  };
}

/** Variables of this process that are set. */
export function hostSettings(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((key) => {
      const value = lookUp(process.env, key);
      return value ? [[key, value]] : [];
    }),
  );
}

/** Digest of a request to these tools, and of the tools. */
export function toolDigest(what: object, packages: readonly string[]): string {
  const text = JSON.stringify([what, packages]) + readFileSync(makeImageScript, "utf8");
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
