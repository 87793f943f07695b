import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installSdk, packSdk, sdkDirectory } from "@holdfast/testing/platform/packed-sdk.ts";

const run = promisify(execFile);
const largestBundleBytes = 60 * 1024;

let directory = "";
let tarball = "";
let project = "";

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-sdk-"));
  tarball = await packSdk(directory);
  project = join(directory, "project");
  await installSdk(tarball, project);
});
afterAll(() => rmSync(directory, { recursive: true }));

describe("the packed SDK", () => {
  test("has no dependency", () => {
    const packages = readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith("."));
    expect(packages).toEqual(["@holdfast"]);
    const installed = join(project, "node_modules", "@holdfast", "sdk");
    expect(readdirSync(installed).toSorted()).toEqual(["LICENSE", "README.md", "dist", "package.json"]);
    const directories = readdirSync(join(installed, "dist"), { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    );
    expect(directories.map(({ name }) => name)).toEqual(["node", "queue"]);
  });

  test.each([
    ["@holdfast/sdk", "createClient"],
    ["@holdfast/sdk/node", "createNodeClient"],
    ["@holdfast/sdk/queue", "createQueue"],
  ])("is imported as %s by a program beside it", async (name, member) => {
    writeFileSync(join(project, "import.js"), `import { ${member} } from "${name}"; console.log(typeof ${member});`);
    const { stdout } = await run(process.execPath, [join(project, "import.js")]);
    expect(stdout).toBe("function\n");
  });

  test("passes publint and attw", async () => {
    const data = readFileSync(tarball);
    const bytes = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
    const { messages, pkg } = await publint({ pack: { tarball: bytes }, strict: true });
    // The sources are for the packages of the checkout, which run without a build.
    const ofSources = 'pkg.exports["./*.ts"] is ./src/*.ts but does not match any files.';
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([ofSources]);
    const result = await checkPackage(createPackageFromTarballData(new Uint8Array(bytes)));
    expect(result.types).toMatchObject({ kind: "included" });
    // The package has ES modules only: `require`, and resolvers without "exports", are known not to load it.
    const others = ["node10", "node16-cjs"];
    const problems = "problems" in result ? result.problems : [];
    expect(problems.filter((p) => !("resolutionKind" in p) || !others.includes(p.resolutionKind))).toEqual([]);
    expect("entrypoints" in result && Object.keys(result.entrypoints)).toEqual([
      ".",
      "./node",
      "./queue",
      "./*.ts",
      "./package.json",
    ]);
  });

  test("has types that compile in strict projects, without those of Node", async () => {
    writeFileSync(
      join(project, "browser.ts"),
      `import { type Client, createClient, NotFound, ValidationFailed, verifyWebhook } from "@holdfast/sdk";
       const client: Client = createClient({ baseUrl: "https://x", credentials: { kind: "bearer", token: "t" } });
       const { status } = await client.waitFor("id", "Running", { onProgress: ({ progress_pct }) => progress_pct.toFixed() });
       const deleted: undefined = await client.waitFor("id", "deleted");
       try {
         for await (const { name } of client.services.list({ status })) name.length;
         for await (const { entries } of client.events.list().pages()) entries[0]?.event_type.length;
       } catch (error) {
         if (error instanceof ValidationFailed) error.fields[0]?.field.length;
         if (error instanceof NotFound) error.code.length;
       }
       // @ts-expect-error there is no such status
       await client.services.list({ status: "running" }).toArray();
       export const { event_type } = await verifyWebhook(new Uint8Array(), new Headers(), ["s"]);
       export { deleted };`,
    );
    writeFileSync(
      join(project, "node.ts"),
      `import { createNodeClient, readProfiles, SettingsError } from "@holdfast/sdk/node";
       export const { scopes } = await createNodeClient({ profile: readProfiles({}).current ?? "p", timeoutMs: 1 }).me();
       export const isMine = (error: unknown): boolean => error instanceof SettingsError;`,
    );
    const target = { target: "es2022", lib: ["es2022", "dom", "dom.iterable"], types: [] };
    const modules = { module: "esnext", moduleResolution: "bundler", noEmit: true };
    const compilerOptions = { ...target, ...modules, strict: true, exactOptionalPropertyTypes: true };
    writeFileSync(
      join(project, "tsconfig.json"),
      JSON.stringify({ compilerOptions, files: ["browser.ts", "node.ts"] }),
    );
    await run(join(sdkDirectory, "..", "node_modules", ".bin", "tsc"), ["-p", project]).catch(
      ({ stdout }: { stdout: string }) => expect(stdout).toBe(""),
    );
  });

  test("is small in a browser, and needs nothing of Node there", async () => {
    const input = join(project, "all.js");
    writeFileSync(input, `export * from "@holdfast/sdk";`);
    const bundle = await rolldown({ input, platform: "browser", logLevel: "silent" });
    const { output } = await bundle.generate({ format: "es", minify: true });
    await bundle.close();
    expect(output).toHaveLength(1);
    const [{ code, imports }] = output;
    expect(imports).toEqual([]);
    expect(code).not.toMatch(/node:|\bprocess\b|\bBuffer\b|require\(/);
    const size = gzipSync(code).length;
    expect(size).toBeGreaterThan(1_000);
    expect(size).toBeLessThanOrEqual(largestBundleBytes);
  });
});
