import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { readManifest } from "./image-manifest.ts";
import { findImage, imagesDirectory } from "./node-image.ts";

const imagesDir = imagesDirectory(process.env);
const image = findImage(imagesDir, "trixie");
const root = image?.root ?? "";
const named = (...names: string[]) => names.filter((name) => existsSync(join(root, name)));

/** A recursive `readdir` follows links: `var/run` would lead out of the image, to files of the host. */
function filesBelow(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return filesBelow(path);
    return entry.isFile() ? [path] : [];
  });
}

test.skipIf(image === undefined)("no program has a set-user-ID or set-group-ID bit", () => {
  const files = filesBelow(root);
  expect(files.length).toBeGreaterThan(1_000);
  expect(files.filter((path) => (lstatSync(path).mode & 0o6000) !== 0).map((path) => relative(root, path))).toEqual([]);
});

test.skipIf(image === undefined)("no login is possible: no password is set, and there is no SSH", () => {
  const accounts = existsSync(join(root, "etc/shadow")) ? readFileSync(join(root, "etc/shadow"), "utf8") : "root:*:";
  const open = accounts.split("\n").filter((line) => line !== "" && !/^[^:]+:[*!]/.test(line));
  expect(open).toEqual([]);
  expect(named("usr/sbin/sshd", "usr/bin/ssh", "usr/sbin/dropbear", "etc/ssh", "usr/sbin/telnetd")).toEqual([]);
});

test.skipIf(image === undefined)("it has no machine id, host name, resolvers, keys and package sources", () => {
  expect(readFileSync(join(root, "etc/machine-id"), "utf8")).toBe("");
  expect(readFileSync(join(root, "etc/resolv.conf"), "utf8")).toBe("");
  expect(named("etc/hostname", "etc/apt/sources.list", "etc/ssl/certs/ssl-cert-snakeoil.pem")).toEqual([]);
  expect(
    readdirSync(join(root, "etc/ssl"), { recursive: true }).filter((name) => String(name).endsWith(".key")),
  ).toEqual([]);
  expect(readdirSync(join(root, "var/lib/postgresql")).filter((name) => /^\d/.test(name))).toEqual([]);
});

test.skipIf(image === undefined)("it has the tools of a machine, and neither apt nor a boot system", () => {
  const packages = new Set(readManifest(imagesDir, image?.id ?? "")?.packages.map(({ name }) => name));
  for (const name of ["tini", "util-linux", "mount", "xfsprogs", "postgresql-17", "pgbouncer", "valkey-server"])
    expect(packages.has(name), name).toBe(true);
  for (const name of ["apt", "systemd", "openssh-server", "sudo", "cron", "curl", "wget", "gcc"])
    expect(packages.has(name), name).toBe(false);
  expect(named("usr/bin/tini", "usr/bin/setpriv", "usr/sbin/mkfs.xfs")).toHaveLength(3);
});
