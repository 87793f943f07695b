import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import type { Artifact, ArtifactForm } from "./artifact.ts";
import { type ArtifactArchive, artifactMaxBytes, openArtifactArchive } from "./artifact-archive.ts";
import { addArtifactsScript } from "./node-image.ts";

let directory: string;
let archive: ArtifactArchive;
const script = readFileSync(addArtifactsScript, "utf8");

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-artifacts-"));
  archive = openArtifactArchive(join(directory, "images"));
  mkdirSync(join(directory, "tree", "usr/local"), { recursive: true });
});

function fileOf(name: string, content: string): string {
  writeFileSync(join(directory, name), content);
  return join(directory, name);
}

async function artifactOf(content: string, form: ArtifactForm, path: string): Promise<Artifact> {
  const added = await archive.add(fileOf("added", content), "npm package lib 1.0");
  return { kind: "npm", name: "lib", version: "1.0", path, form, ...added };
}

const addAll = (...files: Artifact[]) => archive.addTo(join(directory, "tree"), { files, script }, directory);

test("a file is in the archive by its hash, and only if it has the expected one", async () => {
  const sha256 = createHash("sha256").update("content").digest("hex");
  const path = fileOf("lib.jar", "content");
  const title = "Maven artifact org.example:lib 1.0";
  await expect(archive.add(path, title, "0".repeat(64))).rejects.toThrow(
    `the ${title} has the SHA-256 ${sha256} instead of ${"0".repeat(64)}`,
  );
  expect(readdirSync(archive.directory)).toEqual([]);
  expect(await archive.find(sha256)).toBeUndefined();
  expect(await archive.add(path, title, sha256)).toEqual({ sha256, sizeBytes: 7 });
  expect(await archive.find(sha256)).toBe(7);
});

test("a file that is too large is refused before it is read", async () => {
  const path = fileOf("large", "");
  truncateSync(path, artifactMaxBytes + 1);
  await expect(archive.add(path, "npm package large 1.0")).rejects.toThrow(
    `the npm package large 1.0 has ${artifactMaxBytes + 1} bytes; the limit is ${artifactMaxBytes}`,
  );
  expect(existsSync(archive.directory)).toBe(false);
});

test("a program is executable, and no file of a tree has a set-user-ID bit", async () => {
  const tree = join(directory, "tree");
  writeFileSync(join(tree, "usr/local/old"), "", { mode: 0o755 });
  await addAll(
    await artifactOf("#!/bin/sh\n", "program", "/usr/local/bin/lib"),
    await artifactOf("jar", "file", "/usr/local/lib/a/b.jar"),
  );
  const modeOf = (path: string) => (statSync(join(tree, path)).mode & 0o7777).toString(8);
  expect([modeOf("usr/local/bin/lib"), modeOf("usr/local/lib/a/b.jar")]).toEqual(["755", "644"]);
});

test("an artifact that is lost or damaged in the archive ends the build, by its name or its hash", async () => {
  const lost = await artifactOf("lost", "file", "/usr/local/lib/lost");
  const damaged = await artifactOf("damaged", "file", "/usr/local/lib/damaged");
  writeFileSync(join(archive.directory, damaged.sha256), "changed");
  await expect(addAll(damaged)).rejects.toThrow(`SHA-256 ${damaged.sha256} of its name`);
  expect(existsSync(join(directory, "tree", "usr/local/lib/damaged"))).toBe(false);
  expect(await archive.missing([lost, { ...lost, sha256: "0".repeat(64) }])).toMatchObject([
    { sha256: "0".repeat(64) },
  ]);
  await expect(addAll({ ...lost, sha256: "0".repeat(64) })).rejects.toThrow(/the archive has no npm artifact lib 1.0/);
});

/** A zip with these files, by Perl, which mmdebstrap needs too. */
function zipOf(files: Readonly<Record<string, string>>): string {
  const program = `
    use IO::Compress::Zip;
    my $zip = IO::Compress::Zip->new(shift @ARGV, Name => $ARGV[0]);
    while (1) { shift @ARGV; $zip->print(shift @ARGV); last unless @ARGV; $zip->newStream(Name => $ARGV[0]); }
    $zip->close();`;
  const path = join(directory, "made.zip");
  execFileSync("perl", ["-e", program, path, ...Object.entries(files).flat()]);
  return path;
}

async function zipArtifact(files: Readonly<Record<string, string>>): Promise<Artifact> {
  const added = await archive.add(zipOf(files), "Maven artifact org.example:lib 1.0");
  return { kind: "maven", name: "org.example:lib", version: "1.0", path: "/usr/local/lib/lib", form: "zip", ...added };
}

test("a zip is unpacked at its path, with its directories", async () => {
  const large = "0123456789".repeat(10_000);
  await addAll(
    await zipArtifact({ "lib-1.0/": "", "lib-1.0/a.jar": large, "lib-1.0/bin/run": "#!/bin/sh", empty: "" }),
  );
  const root = join(directory, "tree/usr/local/lib/lib");
  const paths = readdirSync(root, { recursive: true }).map(String).toSorted();
  expect(paths).toEqual(["empty", "lib-1.0", "lib-1.0/a.jar", "lib-1.0/bin", "lib-1.0/bin/run"]);
  expect(readFileSync(join(root, "lib-1.0/a.jar"), "utf8")).toBe(large);
});

test.each(["../outside", "/outside", "lib/../../outside"])("a zip with the file %s is refused", async (name) => {
  await expect(zipArtifact({ inside: "a", [name]: "b" }).then(addAll)).rejects.toThrow(
    `has a file outside of its directory: ${name}`,
  );
  expect(existsSync(join(directory, "tree/usr/local/lib/outside"))).toBe(false);
});

test("a zip that is cut off, and a file that is not a zip archive, are refused", async () => {
  const path = zipOf({ "a.txt": "0123456789abcdef".repeat(5_000) });
  truncateSync(path, 100);
  const form = { kind: "maven", name: "lib", version: "1", path: "/usr/local/lib/lib", form: "zip" } as const;
  const cut = { ...form, ...(await archive.add(path, "lib")) };
  await expect(addAll(cut)).rejects.toThrow(/is damaged/);
  await expect(addAll({ ...(await artifactOf("text", "zip", "/usr/local/lib/text")) })).rejects.toThrow(/is no zip/);
});
