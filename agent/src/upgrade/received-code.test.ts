import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { digestOfCode } from "@holdfast/common/agent-package.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { openReceivedCode } from "./received-code.ts";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "code-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function codeOf(release: string, text = "") {
  const files = [{ name: "main.mjs", text: `// ${release}\n${text}` }];
  return { release, digest: digestOfCode(release, files), files };
}

test("a stored release is found complete, and not once it was changed", async () => {
  const code = await openReceivedCode(directory, "/elsewhere/main.ts");
  expect(code.ownVersion).toEqual({ release: "checkout", digest: "" });
  const sent = codeOf("2.0.0");
  expect(await code.find(sent.digest)).toBeUndefined();
  const main = await code.store(sent);
  expect(await code.find(sent.digest)).toBe(main);
  expect(readFileSync(main, "utf8")).toContain("2.0.0");
  // An agent that runs it reports it as its own release.
  expect((await openReceivedCode(directory, main)).ownVersion).toEqual({ release: "2.0.0", digest: sent.digest });
  writeFileSync(main, "changed");
  expect(await code.find(sent.digest)).toBeUndefined();
  expect(await code.find((await code.store(sent), sent.digest))).toBe(main);
});

test("the running and the requested release remain, all others are removed", async () => {
  const first = await openReceivedCode(directory, "/elsewhere/main.ts");
  const [a, b, c] = [codeOf("1"), codeOf("2"), codeOf("3")];
  const main = await first.store(a);
  await first.store(b);
  await first.store(c);
  mkdirSync(join(directory, "code", "new"));
  await (await openReceivedCode(directory, main)).removeOthers(c.digest);
  expect(readdirSync(join(directory, "code")).sort()).toEqual([a.digest, c.digest].sort());
});

test.skipIf(!asRoot)("a full disk retains nothing of a release", async () => {
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k", "code", directory]);
  try {
    const code = await openReceivedCode(directory, "/elsewhere/main.ts");
    const large = codeOf("2.0.0", "x".repeat(1 << 20));
    await expect(code.store(large)).rejects.toMatchObject({ code: "ENOSPC" });
    expect(existsSync(join(directory, "code", large.digest))).toBe(false);
    expect(readdirSync(join(directory, "code"))).toEqual([]);
    expect(await code.find((await code.store(codeOf("2.0.1")), codeOf("2.0.1").digest))).toBeDefined();
  } finally {
    execFileSync("umount", [directory]);
  }
});
