import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { packSdk } from "@holdfast/testing/platform/packed-sdk.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";

const execute = promisify(execFile);
const checkout = join(import.meta.dirname, "..", "..");

/** Commands of a page's block that contains `part`. */
function blockOf(page: string, part: string): string {
  const text = readFileSync(join(checkout, "docs", "start", page), "utf8");
  const blocks = [...text.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = ""]) => block);
  const [block, ...others] = blocks.filter((each) => each.includes(part));
  if (block === undefined || others.length > 0) throw new Error(`${page} has not one block with ${part}`);
  return block;
}

describe("commands of the page about the API, from top to bottom", () => {
  let platform: Platform;
  /** The directory of a user: what a checkout has, and the installation in its usual place. */
  let directory: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "holdfast-start-"));
    platform = await startPlatform();
    for (const name of ["bin", "node_modules", "package.json"])
      symlinkSync(join(checkout, name), join(directory, name));
    symlinkSync(platform.directory, join(directory, ".holdfast"));
    mkdirSync(join(directory, "home"));
    await run("./bin/holdfast.js services create shop --type postgresql --wait");
  }, 300_000);
  afterAll(async () => {
    await platform?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Runs a script as a shell does, but ends at the first command that fails. Resolves with its output. */
  async function run(script: string): Promise<string> {
    const { HOLDFAST_DATA: _, ...inherited } = process.env;
    const { stdout, stderr } = await execute("sh", ["-ec", script], {
      cwd: directory,
      // Node is found below the real home.
      env: { ...inherited, HOLDFAST_CACHE: cacheDirectory(process.env), HOME: join(directory, "home") },
    });
    return `${stdout}${stderr}`;
  }

  it("a program with the SDK", async () => {
    const packed = basename(await packSdk(directory));
    const commands = blockOf("api.md", "npm pack ./sdk");
    const [pack = "", ...others] = commands.split("\n");
    expect(pack).toContain(packed);
    expect(await run(others.join("\n"))).toContain("shop Running");
  }, 120_000);

  it("calls of the API without a program", async () => {
    const commands = blockOf("api.md", "npx buf curl").split("\n");
    const hasGrpcurl = await execute("grpcurl", ["--version"]).then(
      () => true,
      () => false,
    );
    const output = await run(commands.filter((line) => hasGrpcurl || !line.startsWith("grpcurl")).join("\n"));
    expect(output).toContain('"name":"shop"');
    expect(output).toContain('"machines"');
  }, 120_000);
});
