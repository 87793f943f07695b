import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readAdditions } from "./additions.ts";
import { recipes } from "./catalog.ts";
import { inImage } from "./in-image.ts";
import { canRemake, makeImage } from "./make-image.ts";
import { imagesDirectory, type NodeImage, versionIn } from "./node-image.ts";

const run = promisify(execFile);
const longMs = 900_000;
const imagesDir = imagesDirectory(process.env);
const architecture = process.arch === "arm64" ? "arm64" : "amd64";
const libraries = ["libcurl.so.4", "libssl.so.3", "libcrypto.so.3", "liblzma.so.5", "libgcc_s.so.1"];

let directory: string;
let image: NodeImage;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-packages-"));
  const tree = join(directory, "tree");
  for (const path of ["DEBIAN", "usr/bin", "lib/systemd/system"]) mkdirSync(join(tree, path), { recursive: true });
  const control = ["Package: mongodb-org-server", "Version: 8.0.99", `Architecture: ${architecture}`];
  const rest = ["Maintainer: Test <test@localhost>", "Description: a script", ""];
  writeFileSync(join(tree, "DEBIAN/control"), [...control, ...rest].join("\n"));
  // The time makes the image one of this run.
  writeFileSync(join(tree, "usr/bin/mongod"), `#!/bin/sh\n# ${Date.now()}\necho db version v8.0.99\n`, {
    mode: 0o4755,
  });
  writeFileSync(join(tree, "lib/systemd/system/mongod.service"), "");
  const file = join(directory, `mongodb-org-server_8.0.99_${architecture}.deb`);
  await run("dpkg-deb", ["--build", "--root-owner-group", tree, file]);
  const additions = await readAdditions((variable) => (variable === "HOLDFAST_MONGOD_PACKAGES" ? directory : ""));
  const artifacts = additions.mongod?.artifacts ?? [];
  const options = { imagesDir, progress: (line: string) => console.error(line) };
  image = await makeImage("mongod", { ...recipes.mongod, artifacts }, options);
}, longMs);
afterAll(() => {
  rmSync(directory, { recursive: true });
  if (image !== undefined) for (const path of [image.root, `${image.root}.json`]) rmSync(path, { recursive: true });
});

test("the image of a package of mongod has its program, without rights, and the libraries that it loads", async () => {
  const asRoot = process.getuid?.() === 0;
  const argv = ["sh", "-c", "stat -c %a /usr/local/bin/mongod; mongod --version; ldconfig -p"];
  const { command, args } = inImage(image.root, { argv, uid: 65_533, binds: [], asRoot });
  const { stdout } = await run(command, args, { cwd: "/" });
  expect(stdout).toContain("755\ndb version v8.0.99\n");
  for (const library of libraries) expect(stdout).toContain(`${library} `);
  expect(existsSync(join(image.root, "lib/systemd/system/mongod.service"))).toBe(false);
});

test("the image has the package's version, and can be built again without the package", async () => {
  expect(image.software("mongodb", "8.0")).toBe("/usr/local");
  expect(versionIn(imagesDir, image.id, "mongodb", "8.0")).toBe("8.0.99");
  expect(await canRemake(imagesDir, image.id)).toBe(true);
});
