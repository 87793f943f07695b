import { expect, test } from "vitest";
import type { AddedArtifacts, Artifact } from "./artifact.ts";
import { digestOf, indexOf, type Package, parseIndex, upstreamVersion } from "./package-set.ts";

const index = `Package: tini
Version: 0.19.0-3
Architecture: amd64
Description: tiny
 but valid
 .
 init
Description-md5: 0123
Filename: pool/t/tini.deb
Size: 12
MD5sum: 4567
SHA256: aa11

Package: broken
Version: 1

Package: zlib1g
Version: 1:1.3.dfsg+really1.3.1-1
Architecture: amd64
Filename: pool/z/zlib.deb
Size: 13
SHA256: bb22
`;
const packages = parseIndex(index);

test("an index is parsed, and written for files named by their hash", () => {
  expect(packages.map(({ name, version, sizeBytes, path }) => [name, version, sizeBytes, path])).toEqual([
    ["tini", "0.19.0-3", 12, "pool/t/tini.deb"],
    ["zlib1g", "1:1.3.dfsg+really1.3.1-1", 13, "pool/z/zlib.deb"],
  ]);
  const written = indexOf(packages);
  expect(written).toContain("Description: tiny\n but valid\n .\n init\nFilename: ./aa11.deb\n");
  const again = parseIndex(written);
  expect(again.map(({ path: _path, ...each }) => each)).toEqual(packages.map(({ path: _path, ...each }) => each));
  expect(again.map(({ path }) => path)).toEqual(["./aa11.deb", "./bb22.deb"]);
});

test("the same packages have the same digest, in any order and from any mirror", () => {
  const contents = { packages, script: "make", installed: true };
  const digest = digestOf(contents);
  expect(digest).toMatch(/^[0-9a-f]{16}$/);
  expect(digestOf({ ...contents, packages: [...packages].reverse() })).toBe(digest);
});

// biome-ignore format: a table
test.each([
  ["a package less",               { packages: packages.slice(1) }],
  ["another version",              { packages: changed({ version: "0.19.0-4" }) }],
  ["another file of that version", { packages: changed({ sha256: "aa12" }) }],
  ["another architecture",         { packages: changed({ architecture: "arm64" }) }],
  ["another script",               { script: "make it otherwise" }],
  ["packages that are unpacked",   { installed: false }],
])("%s is another digest", (_, change) => {
  const contents = { packages, script: "make", installed: true };
  expect(digestOf({ ...contents, ...change })).not.toBe(digestOf(contents));
});

const artifact: Artifact = {
  kind: "maven",
  name: "org.example:lib",
  version: "1.0",
  sha256: "cc33",
  sizeBytes: 14,
  path: "/usr/local/lib/lib.jar",
  form: "file",
};
const second: Artifact = { ...artifact, kind: "npm", name: "lib", form: "tarball", path: "/usr/local/lib/lib" };
const added: AddedArtifacts = { files: [artifact, second], script: "add" };
const withArtifacts = (artifacts: AddedArtifacts) => digestOf({ packages, script: "make", installed: true, artifacts });

test("images without artifacts have the digests that they had before there were any", () => {
  const [tini, zlib] = ["aa11", "bb22"].map((sha256) => ({ ...packages[0], version: "1.0-1", sha256 }) as Package);
  const both = [tini, { ...zlib, name: "zlib1g" }] as Package[];
  expect(digestOf({ packages: both, script: "make", installed: true })).toBe("45cdb844523d0e6a");
});

test("artifacts are part of the digest, in any order", () => {
  expect(withArtifacts(added)).not.toBe(digestOf({ packages, script: "make", installed: true }));
  expect(withArtifacts({ ...added, files: [second, artifact] })).toBe(withArtifacts(added));
});

// biome-ignore format: a table
test.each([
  ["another version",                 { version: "1.1" }],
  ["another file",                    { sha256: "cc34" }],
  ["another path",                    { path: "/usr/local/lib/other.jar" }],
  ["a program in place of a file",    { form: "program" }],
  ["an artifact of another registry", { kind: "go" }],
] as const)("%s is another digest", (_, change) => {
  expect(withArtifacts({ ...added, files: [{ ...artifact, ...change }, second] })).not.toBe(withArtifacts(added));
});

test("another script that adds artifacts is another digest, and so is an artifact less", () => {
  const others = [
    { ...added, script: "add it otherwise" },
    { ...added, files: [artifact] },
  ].map(withArtifacts);
  expect(new Set([withArtifacts(added), ...others]).size).toBe(3);
});

function changed(change: Partial<Package>): Package[] {
  return packages.map((each, place) => (place === 0 ? { ...each, ...change } : each));
}

// biome-ignore format: a table
test.each([
  ["17.11-0+deb13u1",           "17.11"],
  ["8.1.4+dfsg1-0+deb13u1",     "8.1.4"],
  ["2:9.0.1~rc1-1",             "9.0.1"],
  ["2.41-12+deb13u4",           "2.41"],
  ["3.5.16-4+b3",               "3.5.16"],
  ["5",                         "5"],
  ["v2.7.0",                    "2.7.0"],
])("the upstream version of %s is %s", (version, upstream) => {
  expect(upstreamVersion(version)).toBe(upstream);
});
