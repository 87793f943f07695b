import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { ImageImpossible } from "./image-impossible.ts";
import { type OfferedPackage, parseIndex } from "./package-set.ts";

/** Packages of the mirror that the host's apt uses. */
export interface PackageSource {
  /** Resolves packages with all their dependencies to the mirror's current files. Equal results mean equal files. */
  resolve(request: PackageRequest, signal?: AbortSignal): Promise<ResolvedPackage[]>;
  /** Fetches files and verifies their hashes. */
  fetch(files: readonly FileRequest[], signal?: AbortSignal): Promise<void>;
}

export interface PackageRequest {
  readonly suite: string;
  readonly names: readonly string[];
  /** Second suite, for names that the first does not have, and their dependencies. */
  readonly besideSuite?: string | undefined;
}

export interface ResolvedPackage extends Omit<OfferedPackage, "path"> {
  readonly uri: string;
}

export interface FileRequest {
  readonly uri: string;
  readonly path: string;
  readonly sha256: string;
}

const helper = "/usr/lib/apt/apt-helper";
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
const maxOutputBytes = 64 << 20;

/** Opens apt with a new directory below `below`, which `close` removes; the host's apt does not change. */
export async function openPackageSource(below: string): Promise<PackageSource & { close(): Promise<void> }> {
  const mirrors = await debianMirrors();
  const transport = await transportOptions();
  await mkdir(below, { recursive: true });
  const directory = await mkdtemp(join(below, "apt-"));
  const config = join(directory, "apt.conf");
  const apt = async (command: string, args: readonly string[], signal: AbortSignal | undefined) => {
    const env = { ...process.env, APT_CONFIG: config, LC_ALL: "C" };
    const { stdout } = await runProgram(command, args, { env, maxBuffer: maxOutputBytes, ...(signal && { signal }) });
    return stdout;
  };
  for (const part of ["etc/apt/apt.conf.d", "etc/apt/preferences.d", "var/lib/dpkg"])
    await mkdir(join(directory, part), { recursive: true });
  for (const part of ["var/lib/apt/lists/partial", "var/cache/apt/archives/partial"])
    await mkdir(join(directory, part), { recursive: true });
  // With an empty status nothing counts as installed, so every dependency is listed.
  await writeFile(join(directory, "var/lib/dpkg/status"), "");
  const { stdout: architecture } = await runProgram("dpkg", ["--print-architecture"]);
  await writeFile(config, configOf(directory, architecture.trim(), transport));

  /** Security updates are a separate suite, which some suites (sid) and some mirrors do not have. */
  async function linesOf(suite: string, signal: AbortSignal | undefined): Promise<string> {
    const options = `[signed-by=${keyring}]`;
    const main = `deb ${options} ${mirrors.main} ${suite} main\n`;
    if (mirrors.security === undefined) return main;
    const both = `${main}deb ${options} ${mirrors.security} ${suite}-security main\n`;
    try {
      await update(both, signal);
      return both;
    } catch {
      signal?.throwIfAborted();
      return main;
    }
  }

  async function update(lines: string, signal: AbortSignal | undefined): Promise<void> {
    await writeFile(join(directory, "etc/apt/sources.list"), lines);
    await apt("apt-get", ["-qq", "update", "--error-on=any"], signal);
  }

  async function updateFor({ suite, besideSuite }: PackageRequest, signal: AbortSignal | undefined): Promise<void> {
    const first = await linesOf(suite, signal);
    const lines = besideSuite === undefined ? first : first + (await linesOf(besideSuite, signal));
    await update(lines, signal);
  }

  return {
    async resolve(request, signal) {
      const { suite, names } = request;
      try {
        await updateFor(request, signal);
        // apt counts itself as essential; an image does not need it.
        const essential = "?and(?essential,?not(?exact-name(apt)))";
        // Packages of both suites come from the requested one, even if the other's are newer.
        const release = request.besideSuite === undefined ? [] : [`--target-release=${suite}`];
        const options = ["-qq", "-y", ...release, "--print-uris"];
        const offered = await apt("apt-get", ["install", ...options, essential, ...names], signal);
        const uris = new Map(offered.split("\n").flatMap(parseOffer));
        const records = await apt("apt-cache", ["show", "--no-all-versions", ...uris.keys()], signal);
        return parseIndex(records).map(({ path: _path, ...each }) => {
          const uri = uris.get(`${each.name}=${each.version}`);
          if (uri === undefined) throw new Error(`${each.name} ${each.version} was not requested`);
          return { ...each, uri };
        });
      } catch (error) {
        signal?.throwIfAborted();
        throw new ImageImpossible(`the packages of ${suite} could not be resolved: ${reasonOf(error)}`, {
          cause: error,
        });
      }
    },
    async fetch(files, signal) {
      const args = files.flatMap(({ uri, path, sha256 }) => [uri, path, `SHA256:${sha256}`]);
      try {
        await apt(helper, ["download-file", ...args], signal);
      } catch (error) {
        signal?.throwIfAborted();
        throw new ImageImpossible(`packages could not be fetched: ${reasonOf(error)}`, { cause: error });
      }
    },
    close: () => rm(directory, { recursive: true, force: true }),
  };
}

/** Parses a line of `apt-get --print-uris`: quoted address, file name, size, hash. */
function parseOffer(line: string): [choice: string, uri: string][] {
  const [, uri = "", file = ""] = /^'([^']+)' (\S+) /.exec(line) ?? [];
  const [name, version] = file.split("_");
  return name === undefined || version === undefined ? [] : [[`${name}=${decodeURIComponent(version)}`, uri]];
}

/** Debian mirrors in the configuration of this host's apt, which is the operator's choice. */
export async function debianMirrors(): Promise<{ readonly main: string; readonly security: string | undefined }> {
  const { stdout } = await runProgram("apt-get", ["indextargets", "--format", "$(REPO_URI)"]);
  const uris = stdout.split("\n");
  const main = uris.find((uri) => /\/debian\/?$/.test(uri));
  if (main === undefined)
    throw new ImageImpossible("the configuration of apt has no Debian mirror (a URI that ends in /debian)");
  return { main, security: uris.find((uri) => /\/debian-security\/?$/.test(uri)) };
}

/** Lines with the proxies and certificates of apt's configuration. */
export async function transportOptions(): Promise<string[]> {
  const { stdout } = await runProgram("apt-config", ["dump"]);
  return stdout.split("\n").filter((line) => /^Acquire::https?::\S+ "[^"]+";$/.test(line));
}

function configOf(directory: string, architecture: string, transport: readonly string[]): string {
  const lines = [
    `Dir "${directory}";`,
    `Dir::State::status "${directory}/var/lib/dpkg/status";`,
    'APT::Sandbox::User "";',
    'APT::Install-Recommends "false";',
    `APT::Architecture "${architecture}";`,
    `APT::Architectures "${architecture}";`,
    'Acquire::Languages "none";',
    'Acquire::Check-Valid-Until "false";',
    // Without root, locks would be refused; no other process uses the directory.
    'Debug::NoLocking "true";',
    ...transport,
  ];
  return `${lines.join("\n")}\n`;
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
  return text === "" ? (error instanceof Error ? error.message : String(error)) : text.slice(-1_000);
}
