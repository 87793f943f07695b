import { execFile } from "node:child_process";
import { chownSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { inImage } from "./in-image.ts";
import { findImage, imagesDirectory } from "./node-image.ts";

const run = promisify(execFile);
const asRoot = process.getuid?.() === 0;
const uid = 65_533;

async function inside(script: string, binds: string[] = [], lowPorts = false): Promise<string> {
  const image = findImage(imagesDirectory(process.env), "trixie");
  if (image === undefined) throw new Error("no image: run holdfast images make");
  const launch = inImage(image.root, { argv: ["sh", "-c", script], uid, binds, asRoot, lowPorts });
  return (await run(launch.command, launch.args, { cwd: "/" })).stdout.trim();
}

test("a program runs as its own user, first in its PID namespace, in the image's system", async () => {
  expect(await inside("id -u; echo $$; . /etc/os-release; echo $VERSION_CODENAME")).toBe(`${uid}\n1\ntrixie`);
});

test("a bound directory is where the host has it, and what is written there stays", async () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-bind-"));
  if (asRoot) chownSync(directory, uid, uid);
  await inside(`echo kept > ${directory}/file`, [directory]);
  expect(readFileSync(`${directory}/file`, "utf8")).toBe("kept\n");
});

test("a directory that the image's own /usr and /etc would hide is refused", () => {
  for (const path of ["/etc/holdfast/etcd", "/usr"]) {
    const options = { argv: ["true"], uid, binds: ["/tmp", path], asRoot };
    expect(() => inImage("/image", options)).toThrow(`${path} cannot be in an image`);
  }
});

test("the image cannot be changed from inside", async () => {
  expect(await inside("touch /usr/mark /etc/mark 2>/dev/null || echo refused")).toBe("refused");
});

test.runIf(asRoot)("a program has no capability, or the one for ports below 1024 alone", async () => {
  const effective = "sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status";
  expect(await inside(effective)).toBe("0000000000000000");
  expect(await inside(effective, [], true)).toBe("0000000000000400");
});
