import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ArtifactRequest, GoRequest, MavenRequest, NpmRequest, TextRequest } from "./artifact.ts";
import type { Recipe } from "./recipe.ts";
import { readManifest } from "./image-manifest.ts";
import { inImage } from "./in-image.ts";
import { canRemake, makeImage } from "./make-image.ts";
import { imagesDirectory, type NodeImage } from "./node-image.ts";
import type { FetchOptions } from "./tool-tree.ts";

const run = promisify(execFile);
const longMs = 900_000;
const asRoot = process.getuid?.() === 0;
/** The host's own, which has the tools of earlier runs; the recipe's name is this run's, and so are its images. */
const imagesDir = imagesDirectory(process.env);
const name = `fixture${Math.random()
  .toString(36)
  .replaceAll(/[^a-z]/g, "")}`;
const options: FetchOptions = { imagesDir, progress: (line) => console.error(line) };

const shell: GoRequest = {
  kind: "go",
  module: "mvdan.cc/sh/v3",
  version: "v3.10.0",
  sum: "h1:v9z7N1DLZ7owyLM/SXZQkBSXcwr2IGMm2LY2pmhVXj4=",
  package: "mvdan.cc/sh/v3/cmd/gosh",
  path: "/usr/local/bin/gosh",
};
const slf4j: MavenRequest = {
  kind: "maven",
  group: "org.slf4j",
  artifact: "slf4j-api",
  version: "2.0.17",
  sha256: "7b751d952061954d5abfed7181c1f645d336091b679891591d63329c622eb832",
  path: "/usr/local/lib/fixture/slf4j-api.jar",
};
/** A jar is a zip. */
const unpacked: MavenRequest = { ...slf4j, unpack: true, path: "/usr/local/lib/fixture/slf4j-api" };
const leftPad: NpmRequest = {
  kind: "npm",
  name: "left-pad",
  version: "1.3.0",
  sha256: "870c0fe1096223a58d4f8832d08a7e651ea2fcadb8e6877b2fdc26b662d481dd",
  path: "/usr/local/lib/fixture/left-pad",
};
const text: TextRequest = {
  kind: "text",
  name: "fixture-settings",
  version: "1.0",
  text: "one = 1\n",
  path: "/usr/local/lib/fixture/settings",
};
const recipe = (...artifacts: ArtifactRequest[]): Recipe => ({
  suite: "trixie",
  packages: ["util-linux", "mount", "tini"],
  software: [],
  artifacts,
});

/** Hash and mode of each file that the image has of no package. */
function addedFiles(root: string): [string, string][] {
  const entries = readdirSync(join(root, "usr/local"), { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return paths
    .map((path): [string, string] => [
      path.slice(root.length),
      `${(statSync(path).mode & 0o7777).toString(8)} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`,
    ])
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
}

describe("an image of Debian packages, a Go module, a Maven artifact and an npm package", () => {
  let image: NodeImage;

  beforeAll(async () => {
    image = await makeImage(name, recipe(shell, slf4j, unpacked, leftPad, text), options);
  }, longMs);
  afterAll(() => {
    for (const id of readdirSync(imagesDir).filter((each) => each.startsWith(`${name}-`)))
      rmSync(join(imagesDir, id), { recursive: true });
  });

  test("has the program, the file and the contents of the tarball at their paths", async () => {
    expect(image.id).toMatch(new RegExp(`^${name}-[0-9a-f]{16}$`));
    const { command, args } = inImage(image.root, {
      argv: ["gosh", "-c", "echo $((6 * 7))"],
      uid: 65_533,
      binds: [],
      asRoot,
    });
    expect((await run(command, args, { cwd: "/" })).stdout).toBe("42\n");
    const files = new Map(addedFiles(image.root));
    expect(files.get("/usr/local/lib/fixture/slf4j-api.jar")).toBe(`644 ${slf4j.sha256}`);
    expect(files.get("/usr/local/bin/gosh")).toMatch(/^755 /);
    expect(files.get(`${unpacked.path}/org/slf4j/Logger.class`)).toMatch(/^644 /);
    const { version } = JSON.parse(readFileSync(join(image.root, leftPad.path, "package.json"), "utf8")) as {
      version: string;
    };
    expect(version).toBe("1.3.0");
    expect(readFileSync(join(image.root, text.path), "utf8")).toBe(text.text);
    for (const path of files.keys()) expect(statSync(join(image.root, path)).uid).toBe(process.getuid?.());
  });

  test("is built again without a network, with the same digest and files", { timeout: longMs }, async () => {
    const before = addedFiles(image.root);
    rmSync(image.root, { recursive: true });
    expect(await canRemake(imagesDir, image.id)).toBe(true);
    const user = asRoot ? [] : ["--user", "--map-current-user"];
    const main = join(import.meta.dirname, "main.ts");
    const { stdout } = await run("unshare", [...user, "--net", process.execPath, main, "remake", image.id]);
    expect(stdout.trim()).toBe(image.root);
    expect(addedFiles(image.root)).toEqual(before);
    // The same recipe is the same image: nothing is built.
    const builtAt = statSync(image.root).ctimeMs;
    expect((await makeImage(name, recipe(leftPad, unpacked, text, slf4j, shell), options)).id).toBe(image.id);
    expect(statSync(image.root).ctimeMs).toBe(builtAt);
  });

  test("has a bill that lists each artifact and each module of the program, with version and hash", async () => {
    const main = join(import.meta.dirname, "main.ts");
    const { stdout } = await run(process.execPath, [main, "contents", image.id], { maxBuffer: 16 << 20 });
    expect(await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(stdout)).toBeNull();
    const { components, dependencies } = JSON.parse(stdout) as {
      components: {
        name: string;
        version: string;
        purl: string;
        hashes?: { content: string }[];
        properties?: object[];
      }[];
      dependencies: { ref: string; dependsOn: string[] }[];
    };
    const of = (purl: string) => components.find((each) => each.purl === purl);
    expect(of("pkg:maven/org.slf4j/slf4j-api@2.0.17?type=jar")).toMatchObject({
      group: "org.slf4j",
      hashes: [{ content: slf4j.sha256 }],
    });
    expect(of("pkg:npm/left-pad@1.3.0")).toMatchObject({ hashes: [{ content: leftPad.sha256 }] });
    const program = addedFiles(image.root)
      .find(([path]) => path === shell.path)?.[1]
      .slice(4);
    expect(of("pkg:golang/mvdan.cc/sh/v3@v3.10.0")).toMatchObject({
      type: "application",
      hashes: [{ content: program }],
      properties: [expect.anything(), { name: "holdfast:go-sum", value: shell.sum }],
    });
    const modules = dependencies.find(({ ref }) => ref.startsWith("pkg:golang/mvdan.cc/sh/v3@"))?.dependsOn ?? [];
    expect(modules).toContain("pkg:golang/golang.org/x/term@v0.25.0");
    for (const each of modules) expect(of(each)?.version).toBeTruthy();
    expect(of("pkg:deb/debian/tini") ?? components.find((each) => each.name === "tini")).toBeDefined();
  });

  // biome-ignore format: a table
  test.each([
    ["Go module mvdan.cc/sh/v3 v3.10.0",              { ...shell, sum: `h1:${"A".repeat(43)}=` }],
    ["Maven artifact org.slf4j:slf4j-api 2.0.17",    { ...slf4j, sha256: "0".repeat(64) }],
    ["npm package left-pad 1.3.0",                   { ...leftPad, sha256: "0".repeat(64) }],
  ] as const)("a wrong hash of the %s is an error that names it, and no image", { timeout: longMs }, async (title, wrong) => {
    const before = readdirSync(imagesDir).filter((each) => each.startsWith(name));
    const sum = wrong.kind === "go" ? "sum" : "SHA-256";
    await expect(makeImage(name, recipe(wrong), options)).rejects.toThrow(new RegExp(`${title} has the ${sum} .* instead of`));
    expect(readdirSync(imagesDir).filter((each) => each.startsWith(name))).toEqual(before);
    expect(existsSync(join(imagesDir, "artifacts", "0".repeat(64)))).toBe(false);
  });

  test("its manifest has each artifact's size, and the Go toolchain", () => {
    const files = readManifest(imagesDir, image.id)?.artifacts?.files ?? [];
    expect(files.map(({ kind }) => kind)).toEqual(["go", "maven", "maven", "npm", "text"]);
    for (const { kind, sizeBytes } of files) expect(sizeBytes).toBeGreaterThan(kind === "text" ? 0 : 1_000);
    expect(files[0]?.modules?.[0]).toEqual({ name: "std", version: expect.stringMatching(/^1\.\d+/) });
  });
});
