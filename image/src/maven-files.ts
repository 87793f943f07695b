import { existsSync } from "node:fs";
import { chmod, copyFile, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { type MavenRequest, titleOf } from "./artifact.ts";
import { ImageImpossible } from "./image-impossible.ts";
import { openToolTree, type ToolOptions, type ToolTree } from "./tool-tree.ts";
import { inWorkDirectory } from "./work-directory.ts";

const suite = "trixie";
const toolPackages = ["util-linux", "mount", "ca-certificates", "openssl", "maven"];
const plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";
/** Paths of the programs themselves: a tree that is only unpacked has no links of Debian's alternatives. */
const [mvn, JAVA_HOME] = ["/usr/share/maven/bin/mvn", "/usr/lib/jvm/default-java"];
/** Password of the trust store, a file with public certificates. */
const password = "changeit";

/**
 * Fetches files of Maven repositories, each without its dependencies, by Debian's Maven in a tool tree. It follows the
 * host's `~/.m2/settings.xml`: mirrors, proxies, credentials. `use` gets the path of each file, in order, before all of
 * them are removed. Throws ImageImpossible.
 */
export async function fetchMavenFiles(
  requests: readonly MavenRequest[],
  options: ToolOptions,
  use: (paths: readonly string[]) => Promise<void>,
): Promise<void> {
  const { imagesDir, asRoot, progress, signal } = options;
  await inWorkDirectory(imagesDir, "maven", async (work) => {
    const settings = join(homedir(), ".m2", "settings.xml");
    const hasSettings = existsSync(settings);
    await writeFile(join(work, "pom.xml"), pomOf(requests, join(work, "files")));
    if (hasSettings) {
      await copyFile(settings, join(work, "settings.xml"));
      // The settings may have passwords.
      await chmod(join(work, "settings.xml"), 0o600);
    }
    const tools = await openToolTree({ suite, packages: toolPackages }, work, options);
    progress(`fetching ${requests.length} Maven artifacts`);
    const flags = ["--batch-mode", "--quiet", ...(hasSettings ? ["--settings", join(work, "settings.xml")] : [])];
    try {
      const MAVEN_OPTS = await javaOptions(tools, work);
      await tools.run([mvn, ...flags, "--file", join(work, "pom.xml"), plugin], { MAVEN_OPTS, JAVA_HOME });
    } catch (error) {
      signal?.throwIfAborted();
      const names = requests.map(titleOf).join(", ").slice(0, 500);
      throw new ImageImpossible(`${names} could not be fetched: ${reasonOf(error)}`, { cause: error });
    }
    // From here on the tools' user cannot change the files.
    if (asRoot) await runProgram("chown", ["-R", "0:0", join(work, "files")]);
    await use(requests.map((_, at) => join(work, "files", `artifact-${at}`)));
  });
}

async function javaOptions(tools: ToolTree, work: string): Promise<string> {
  const options = {
    "maven.repo.local": join(work, "repository"),
    "user.home": join(work, "home"),
    "javax.net.ssl.trustStore": await trustStoreOf(tools, work),
    "javax.net.ssl.trustStorePassword": password,
  };
  return Object.entries(options)
    .map(([name, value]) => `-D${name}=${value}`)
    .join(" ");
}

/** Maven prints its errors to its standard output. */
function reasonOf(error: unknown): string {
  const output = error instanceof Error && "stdout" in error ? String(error.stdout).trim() : "";
  return (output === "" ? (error instanceof Error ? error.message : String(error)) : output).slice(0, 2_000);
}

/** Converts the authorities to a trust store, because Java cannot read a PEM file. */
async function trustStoreOf(tools: ToolTree, work: string): Promise<string> {
  const store = join(work, "home", "trusted.p12");
  const options = ["-export", "-nokeys", "-jdktrust", "anyExtendedKeyUsage", "-passout", `pass:${password}`];
  await tools.run(["openssl", "pkcs12", ...options, "-in", tools.trusted, "-out", store], {});
  return store;
}

/** A project whose plugin copies exactly these files, `artifact-0` first. */
function pomOf(requests: readonly MavenRequest[], directory: string): string {
  const items = requests.map(({ group, artifact, version, extension = "jar", classifier }, at) =>
    element("artifactItem", [
      text("groupId", group),
      text("artifactId", artifact),
      text("version", version),
      text("type", extension),
      ...(classifier === undefined ? [] : [text("classifier", classifier)]),
      text("destFileName", `artifact-${at}`),
    ]),
  );
  const configuration = element("configuration", [
    element("artifactItems", items),
    text("outputDirectory", directory),
    text("useBaseVersion", "true"),
  ]);
  const [groupId = "", artifactId = "", version = ""] = plugin.split(":");
  return element("project", [
    text("modelVersion", "4.0.0"),
    text("groupId", "holdfast"),
    text("artifactId", "image"),
    text("version", "1"),
    text("packaging", "pom"),
    element("build", [
      element("plugins", [
        element("plugin", [
          text("groupId", groupId),
          text("artifactId", artifactId),
          text("version", version),
          configuration,
        ]),
      ]),
    ]),
  ]);
}

function element(name: string, children: readonly string[]): string {
  return `<${name}>${children.join("")}</${name}>`;
}

function text(name: string, value: string): string {
  return element(name, [value.replaceAll("&", "&amp;").replaceAll("<", "&lt;")]);
}
