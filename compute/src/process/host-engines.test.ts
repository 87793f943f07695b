import { execFile } from "node:child_process";
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { findSoftware, imagesDirectory } from "@holdfast/image/node-image.ts";
import { expect, test } from "vitest";
import { testCheckout } from "@holdfast/testing/machines/process-machines.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";

const run = promisify(execFile);
const uid = 65_531;
const asUser = [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--no-new-privs"];
const image = findSoftware(imagesDirectory(process.env), "postgresql", "17")?.image.root;

/** A host like this one, but with PostgreSQL 17 installed, a user named someone, and without namespaces. */
function hostWithout(image: string, home: string): string {
  const passwd = join(home, "passwd");
  writeFileSync(passwd, `${readFileSync(join(image, "etc/passwd"), "utf8")}someone:x:${uid}:${uid}::/:/bin/sh\n`);
  const binds = [
    [dirname(process.execPath), "/mnt"],
    [`${image}/usr`, "/usr"],
    [`${image}/etc`, "/etc"],
    [passwd, "/etc/passwd"],
    ["/dev/null", "/usr/bin/unshare"],
  ];
  return binds.map(([from, to]) => `mount --bind ${from} ${to}`).join(" && ");
}

test("without namespaces a machine runs the engine that the host has installed", async (context) => {
  if (process.getuid?.() !== 0) context.skip("needs root to make a host without namespaces");
  if (image === undefined) return context.skip("no image has postgresql 17");
  const worker = join(testCheckout, "testing/src/engines/host-engine-worker.ts");
  await run("setpriv", [...asUser, "test", "-r", worker]).catch(() => {
    context.skip("the checkout is in a directory that other users may not enter");
  });
  const home = mkdtempSync(join(tmpdir(), "holdfast-host-"));
  chownSync(home, uid, uid);
  const [port = 0] = await freePorts(1);
  const env = ["env", "-i", "PATH=/usr/bin:/usr/sbin", `HOME=${home}`, `TMPDIR=${home}`];
  const command = ["setpriv", ...asUser, ...env, "/mnt/node", worker, String(port)];
  try {
    const script = `${hostWithout(image, home)} && cd / && exec "$@"`;
    const { stdout } = await run("unshare", ["--mount", "sh", "-c", script, "sh", ...command], { timeout: 160_000 });
    expect(stdout).toMatch(/^answered by 17/);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
