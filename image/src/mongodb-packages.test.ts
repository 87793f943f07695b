import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { debMembers, debOf } from "@holdfast/testing/deb.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { faultOf, readAdditions as readAll } from "./additions.ts";
import { openArtifactArchive } from "./artifact-archive.ts";
import { fetchArtifacts } from "./fetch-artifacts.ts";
import { ensureImage } from "./make-image.ts";
import { newestPath } from "./node-image.ts";

const run = promisify(execFile);
const architecture = process.arch === "arm64" ? "arm64" : "amd64";
const nameOf = (version: string) => `mongodb-org-server_${version}_${architecture}.deb`;
const name = nameOf("8.0.16");
const variable = "HOLDFAST_MONGOD_PACKAGES";
const readAdditions = (packages: string) => readAll((setting) => (setting === variable ? packages : ""));

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-packages-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const write = (file: string, content: Buffer | string) => writeFileSync(join(directory, file), content);
const read = async () => (await readAdditions(directory)).mongod;

/** A package of a program that is a script, as dpkg-deb builds it. */
async function buildPackage(file: string, program = "usr/bin/mongod", version = "8.0.16"): Promise<string> {
  const tree = join(directory, "tree");
  mkdirSync(join(tree, "DEBIAN"), { recursive: true });
  mkdirSync(join(tree, program, ".."), { recursive: true });
  const control = ["Package: mongodb-org-server", `Version: ${version}`, `Architecture: ${architecture}`];
  const rest = ["Maintainer: Test <test@localhost>", "Description: a script", ""];
  writeFileSync(join(tree, "DEBIAN/control"), [...control, ...rest].join("\n"));
  writeFileSync(join(tree, "DEBIAN/postinst"), `#!/bin/sh\ntouch ${directory}/ran\n`, { mode: 0o755 });
  writeFileSync(join(tree, program), "#!/bin/sh\necho db version v8.0.16\n", { mode: 0o755 });
  const path = join(directory, file);
  await run("dpkg-deb", ["--build", "--root-owner-group", tree, path]);
  rmSync(tree, { recursive: true });
  return path;
}

test("the server's package is an addition to the images of mongod, by its hash; other files are ignored", async () => {
  const deb = debOf();
  write(name, deb);
  write(`mongodb-org-mongos_8.0.16_${architecture}.deb`, "not read");
  write("mongodb-org-server_8.0.16_riscv64.deb", "not read");
  expect(await readAdditions(directory)).toEqual({
    mongod: {
      artifacts: [
        {
          kind: "deb",
          name: "mongodb-org-server",
          version: "8.0.16",
          sha256: createHash("sha256").update(deb).digest("hex"),
          file: join(directory, name),
          program: "usr/bin/mongod",
          path: "/usr/local/bin/mongod",
        },
      ],
    },
  });
});

test("another package is another image", async () => {
  write(name, debOf());
  const first = newestPath(directory, "mongod", await readAdditions(directory));
  write(name, debOf(debMembers.map((member) => ({ ...member, content: `${String(member.content)}!` }))));
  const second = newestPath(directory, "mongod", await readAdditions(directory));
  expect(new Set([newestPath(directory, "mongod"), first, second]).size).toBe(3);
  expect(newestPath(directory, "mongodb", await readAdditions(directory))).toBe(newestPath(directory, "mongodb"));
});

// biome-ignore format: a table
test.each([
  ["text",                          Buffer.from("text"),                                             "it is no Debian package"],
  ["an empty file",                 Buffer.alloc(0),                                                 "it is no Debian package"],
  ["another archive",               debOf([{ name: "a.o", content: "" }]),                           "it is no Debian package, or damaged"],
  ["a package without contents",    debOf(debMembers.slice(0, 2)),                                   "it is no Debian package, or damaged"],
  ["a package that is cut",         debOf().subarray(0, -3),                                         "it is incomplete"],
  ["a member that claims too much", debOf(debMembers.map((each) => ({ ...each, claimedBytes: 999 }))), "it is incomplete"],
])("%s is a fault that names the file", async (_case, content, reason) => {
  write(name, content);
  expect(await read()).toEqual({ artifacts: [], fault: `${variable}: ${name}: ${reason}` });
});

// biome-ignore format: a table
test.each([
  ["no package of the server",   ["mongodb-mongosh_2.5.0_amd64.deb"],   `the directory has no ${nameOf("8.0.N")}`],
  ["another series",             [nameOf("7.0.5")],                     `${nameOf("7.0.5")}: use ${nameOf("8.0.N")}`],
  ["an unreleased version",      [nameOf("8.0.17~rc0")],                `${nameOf("8.0.17~rc0")}: use ${nameOf("8.0.N")}`],
  ["two versions",               [nameOf("8.0.15"), nameOf("8.0.16")],  `the directory has both ${nameOf("8.0.15")} and ${nameOf("8.0.16")}: remove one of them`],
])("%s is a fault", async (_case, files, reason) => {
  for (const file of files) write(file, debOf());
  expect(await read()).toEqual({ artifacts: [], fault: `${variable}: ${reason}` });
});

test("a link, and a directory that is absent or relative, are faults without paths of the host", async () => {
  symlinkSync("/etc/passwd", join(directory, name));
  expect((await read())?.fault).toBe(`${variable}: ${name}: it is no regular file`);
  expect((await readAdditions(join(directory, "absent"))).mongod?.fault).toBe(
    `${variable}: the directory or a file in it cannot be read (ENOENT): correct it, and start again`,
  );
  expect((await readAdditions("packages")).mongod?.fault).toBe(`${variable}: the directory is not an absolute path`);
});

test("no image is built without the package", async () => {
  const additions = await readAdditions("");
  expect(additions).toEqual({});
  expect(faultOf("mongodb", additions)).toBeUndefined();
  const missing = `${variable} is empty: no registry has MongoDB's own server, so the operator supplies its package`;
  expect(faultOf("mongod", additions)).toBe(missing);
  const options = { imagesDir: join(directory, "images"), recipe: "mongod", additions, progress: () => {} } as const;
  await expect(ensureImage(options)).rejects.toThrow(missing);
});

const fetchFrom = async () => {
  const imagesDir = join(directory, "images");
  const { artifacts = [] } = (await read()) ?? {};
  const [artifact] = await fetchArtifacts(artifacts, { imagesDir, progress: () => {} });
  return { artifact, archive: openArtifactArchive(imagesDir) };
};

test("the server alone is taken from the package, without its scripts", async () => {
  await buildPackage(name);
  const { artifact, archive } = await fetchFrom();
  expect(artifact).toMatchObject({ name: "mongodb-org-server", version: "8.0.16", form: "program" });
  expect(readFileSync(join(archive.directory, artifact?.sha256 ?? ""), "utf8")).toContain("db version v8.0.16");
  expect(() => statSync(join(directory, "ran"))).toThrow("ENOENT");
});

test("a package of another version than its name, one without the server, and a damaged one are errors", async () => {
  await buildPackage(name, "usr/bin/mongod", "7.0.2");
  await expect(fetchFrom()).rejects.toThrow(`${name}: the package is mongodb-org-server 7.0.2, unlike its name`);
  await buildPackage(name, "usr/bin/mongos");
  await expect(fetchFrom()).rejects.toThrow(`${name}: the package has no program usr/bin/mongod`);
  write(name, debOf());
  await expect(fetchFrom()).rejects.toThrow(`${name}: the package cannot be unpacked`);
});
