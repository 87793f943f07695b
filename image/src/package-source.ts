import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { ImageImpossible } from "./image-impossible.ts";
import { type OfferedPackage, parseIndex } from "./package-set.ts";

/** A mirror's packages, as the apt of this host reaches them. */
export interface PackageSource {
  /** These packages with all that they need, as the mirror has them now: the same files for the same answer. */
  resolve(wanted: WantedPackages, signal?: AbortSignal): Promise<ResolvedPackage[]>;
  /** Fetches a file and checks its hash. */
  fetch(files: readonly WantedFile[], signal?: AbortSignal): Promise<void>;
}

export interface WantedPackages {
  readonly suite: string;
  readonly names: readonly string[];
  /** Where names come from that the suite does not have, and what these need in turn. */
  readonly besideSuite?: string | undefined;
}

export interface ResolvedPackage extends Omit<OfferedPackage, "path"> {
  readonly uri: string;
}

export interface WantedFile {
  readonly uri: string;
  readonly path: string;
  readonly sha256: string;
}

const helper = "/usr/lib/apt/apt-helper";
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
const outputMax = 64 << 20;

/** Works in a directory of its own below this one, so that nothing of the host's apt changes; it goes with `close`. */
export async function openPackageSource(below: string): Promise<PackageSource & { close(): Promise<void> }> {
  const mirrors = await debianMirrors();
  const transport = await transportOptions();
  await mkdir(below, { recursive: true });
  const directory = await mkdtemp(join(below, "apt-"));
  const config = join(directory, "apt.conf");
  const apt = async (command: string, args: readonly string[], signal: AbortSignal | undefined) => {
    const env = { ...process.env, APT_CONFIG: config, LC_ALL: "C" };
    const { stdout } = await runProgram(command, args, { env, maxBuffer: outputMax, ...(signal && { signal }) });
    return stdout;
  };
  for (const part of ["etc/apt/apt.conf.d", "etc/apt/preferences.d", "var/lib/dpkg"])
    await mkdir(join(directory, part), { recursive: true });
  for (const part of ["var/lib/apt/lists/partial", "var/cache/apt/archives/partial"])
    await mkdir(join(directory, part), { recursive: true });
  // Nothing is installed: whatever is needed is named.
  await writeFile(join(directory, "var/lib/dpkg/status"), "");
  const { stdout: architecture } = await runProgram("dpkg", ["--print-architecture"]);
  await writeFile(config, configOf(directory, architecture.trim(), transport));

  /** Security updates are a suite of their own, which not every suite and not every mirror has (sid has none). */
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

  async function updateFor({ suite, besideSuite }: WantedPackages, signal: AbortSignal | undefined): Promise<void> {
    const own = await linesOf(suite, signal);
    const lines = besideSuite === undefined ? own : own + (await linesOf(besideSuite, signal));
    await update(lines, signal);
  }

  return {
    async resolve(wanted, signal) {
      const { suite, names } = wanted;
      try {
        await updateFor(wanted, signal);
        // apt counts itself as essential; an image has no use for it.
        const essential = "?and(?essential,?not(?exact-name(apt)))";
        // What both suites have is the own one's, however new the other's is.
        const release = wanted.besideSuite === undefined ? [] : [`--target-release=${suite}`];
        const options = ["-qq", "-y", ...release, "--print-uris"];
        const offered = await apt("apt-get", ["install", ...options, essential, ...names], signal);
        const uris = new Map(offered.split("\n").flatMap(parseOffer));
        const shown = await apt("apt-cache", ["show", "--no-all-versions", ...uris.keys()], signal);
        return parseIndex(shown).map(({ path: _path, ...each }) => {
          const uri = uris.get(`${each.name}=${each.version}`);
          if (uri === undefined) throw new Error(`${each.name} ${each.version} was not asked for`);
          return { ...each, uri };
        });
      } catch (error) {
        signal?.throwIfAborted();
        throw new ImageImpossible(`the packages of ${suite} could not be worked out: ${said(error)}`, { cause: error });
      }
    },
    async fetch(files, signal) {
      const words = files.flatMap(({ uri, path, sha256 }) => [uri, path, `SHA256:${sha256}`]);
      try {
        await apt(helper, ["download-file", ...words], signal);
      } catch (error) {
        signal?.throwIfAborted();
        throw new ImageImpossible(`packages could not be fetched: ${said(error)}`, { cause: error });
      }
    },
    close: () => rm(directory, { recursive: true, force: true }),
  };
}

/** A line of `apt-get --print-uris`: address in quotes, file name, size, hash. */
function parseOffer(line: string): [choice: string, uri: string][] {
  const [, uri = "", file = ""] = /^'([^']+)' (\S+) /.exec(line) ?? [];
  const [name, version] = file.split("_");
  return name === undefined || version === undefined ? [] : [[`${name}=${decodeURIComponent(version)}`, uri]];
}

/** Debian's addresses as this machine's own apt has them: the mirror is the operator's choice, never ours. */
export async function debianMirrors(): Promise<{ readonly main: string; readonly security: string | undefined }> {
  const { stdout } = await runProgram("apt-get", ["indextargets", "--format", "$(REPO_URI)"]);
  const uris = stdout.split("\n");
  const main = uris.find((uri) => /\/debian\/?$/.test(uri));
  if (main === undefined) throw new ImageImpossible("apt is set up with no Debian mirror (a URI that ends in /debian)");
  return { main, security: uris.find((uri) => /\/debian-security\/?$/.test(uri)) };
}

/** Proxies and certificates that apt is set up with, one a line. */
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
    // Without root its locks would be refused; the directory is nobody else's.
    'Debug::NoLocking "true";',
    ...transport,
  ];
  return `${lines.join("\n")}\n`;
}

function said(error: unknown): string {
  const text = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
  return text === "" ? (error instanceof Error ? error.message : String(error)) : text.slice(-1_000);
}
