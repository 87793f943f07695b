import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { lookUp } from "@holdfast/common/look-up.ts";
import { runProgram } from "@holdfast/common/run-program.ts";
import { ImageImpossible } from "@holdfast/image/image-impossible.ts";
import { inImage } from "@holdfast/image/in-image.ts";
import { ensureTree, type Progress } from "@holdfast/image/make-image.ts";
import { makeImageScript } from "@holdfast/image/node-image.ts";

/** A program that Debian has not: built from a Go module, whose contents the sum decides. */
export interface GoProgram {
  readonly module: string;
  readonly version: string;
  /** Of the module's files, as go.sum has it. */
  readonly sum: string;
  /** Package of the program in the module. */
  readonly package: string;
  /** Modules that its go.mod replaces by paths of its own repository, instead of the published ones. */
  readonly dropReplaces?: readonly string[];
}

export interface GoProgramOptions extends Progress {
  readonly imagesDir: string;
  /** User that builds it; not 0. */
  readonly uid: number;
  readonly asRoot: boolean;
}

const suite = "sid";
const toolPackages = ["util-linux", "mount", "ca-certificates", "golang-go"];
const certificates = "/etc/ssl/certs/ca-certificates.crt";
const passedOn = ["GOPROXY", "GOSUMDB", "GONOSUMDB", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

/**
 * Directory that has only the program. It is built if it is missing, by Debian's tools in a tree of their own, never by
 * the host's. It is linked statically, and runs in any image. Several processes may call this at once. Throws
 * ImageImpossible.
 */
export async function ensureGoProgram(program: GoProgram, options: GoProgramOptions): Promise<string> {
  const { imagesDir, progress } = options;
  const destination = goProgramDirectory(program, imagesDir);
  if (existsSync(destination)) return destination;
  const name = basename(program.package);
  const tools = join(imagesDir, `tools-${suite}-${digestOf(toolPackages)}`);
  await ensureTree({ root: tools, suite, packages: toolPackages }, options);
  progress(`building ${name} ${program.version} from its module (some minutes)`);
  await mkdir(imagesDir, { recursive: true });
  const work = await mkdtemp(join(imagesDir, `program-${name}-`));
  try {
    await build(program, { ...options, tools, work });
    if (options.asRoot) await runProgram("chown", ["-R", "0:0", join(work, "bin")]);
    await rename(join(work, "bin"), destination).catch((error: unknown) => {
      // Somebody else was faster.
      if (!existsSync(destination)) throw error;
    });
    return destination;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Where the program is once it was built. */
export function goProgramDirectory(program: GoProgram, imagesDir: string): string {
  return join(imagesDir, `program-${basename(program.package)}-${digestOf(program)}`);
}

async function build(
  { module, version, sum, package: target, dropReplaces = [] }: GoProgram,
  { tools, work, uid, asRoot, signal }: GoProgramOptions & { readonly tools: string; readonly work: string },
): Promise<void> {
  await chmod(work, 0o755);
  for (const directory of ["bin", "cache", "modules", "home"]) await mkdir(join(work, directory));
  // The tree has neither this host's resolver nor the authorities that this host trusts.
  await copyFile("/etc/resolv.conf", join(tools, "etc", "resolv.conf"));
  const trusted = process.env["SSL_CERT_FILE"] ?? certificates;
  if (existsSync(trusted)) await copyFile(trusted, join(work, "trusted.pem"));
  if (asRoot) await runProgram("chown", ["-R", `${uid}:${uid}`, work]);
  const env = {
    ...Object.fromEntries(
      passedOn.flatMap((key) => {
        const value = lookUp(process.env, key);
        return value ? [[key, value]] : [];
      }),
    ),
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: join(work, "home"),
    GOBIN: join(work, "bin"),
    GOCACHE: join(work, "cache"),
    GOMODCACHE: join(work, "modules"),
    GOFLAGS: "-trimpath -buildvcs=false -modcacherw",
    GOTOOLCHAIN: "local",
    CGO_ENABLED: "0",
    SSL_CERT_FILE: existsSync(join(work, "trusted.pem")) ? join(work, "trusted.pem") : certificates,
  };
  const run = async (...argv: string[]) => {
    const { command, args } = inImage(tools, { argv, uid, binds: [work], asRoot });
    const { stdout } = await runProgram(command, args, {
      env,
      cwd: "/",
      maxBuffer: 16 << 20,
      ...(signal && { signal }),
    });
    return stdout;
  };
  try {
    const download = JSON.parse(await run("go", "mod", "download", "-json", `${module}@${version}`)) as {
      readonly Sum?: string;
      readonly Dir?: string;
    };
    if (download.Sum !== sum) throw new Error(`${module} ${version} has the sum ${download.Sum} instead of ${sum}`);
    if (dropReplaces.length === 0) {
      await run("go", "install", `${target}@${version}`);
      return;
    }
    // `go install` of a version refuses a go.mod with replacements; a copy of the module without them is built instead.
    const source = join(work, "source");
    await run("cp", "-r", "--no-preserve=mode", download.Dir ?? "", source);
    await run("go", "-C", source, "mod", "edit", ...dropReplaces.map((each) => `-dropreplace=${each}`));
    await run("go", "-C", source, "install", "-mod=mod", `.${target.slice(module.length)}`);
  } catch (error) {
    signal?.throwIfAborted();
    const why = error instanceof Error ? error.message : String(error);
    throw new ImageImpossible(`${module} ${version} could not be built: ${why.slice(0, 2_000)}`, { cause: error });
  }
}

/** Of all that decides the program. */
function digestOf(what: object): string {
  const text = JSON.stringify([what, toolPackages]) + readFileSync(makeImageScript, "utf8");
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
