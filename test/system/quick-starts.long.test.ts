import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SnippetLanguage, snippetLanguages } from "@holdfast/cli/clients/engine-client.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { type CommandLine, createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot, testUid } from "@holdfast/testing/platform/platform-software.ts";

const execute = promisify(execFile);
const hasGo = await execute("go", ["version"]).then(
  () => true,
  () => false,
);
/** PostgreSQL has no line of curl. */
type Language = Exclude<SnippetLanguage, "curl">;
const languages = snippetLanguages.filter(
  (language): language is Language => language !== "curl" && (language !== "go" || hasGo),
);
const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "start", "connect.md"), "utf8");

describe("programs of the documentation connect to a first database", () => {
  let platform: Platform;
  let shell: CommandLine;
  let image: TestImage | string;
  let directory: string;

  beforeAll(async () => {
    image = await testImage("quickStarts");
    platform = await startPlatform();
    shell = createCommandLine({ HOLDFAST_DATA: platform.directory });
    directory = mkdtempSync(join(tmpdir(), "holdfast-quick-starts-"));
    await holdfast("services", "create", "first", "--type", "postgresql", "--wait");
    await holdfast("users", "create", "first", "reports", "--role", "readonly", "--wait");
    await holdfast("databases", "create", "first", "shop", "--wait");
    // The first run builds an image, which takes minutes on a busy machine.
  }, 900_000);
  afterAll(async () => {
    shell?.remove();
    await platform?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  async function holdfast(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await shell.run(args);
    expect({ code, stderr: code === 0 ? "" : stderr }, args.join(" ")).toEqual({ code: 0, stderr: "" });
    return stdout;
  }

  const inImage = async (argv: readonly string[], environment: Readonly<Record<string, string>> = {}) => {
    if (typeof image === "string") throw new Error(image);
    // Other users may not enter the platform's directory itself.
    return image.run(argv, [directory, join(platform.directory, "client")], environment);
  };

  /** File name and run of each language's program, as its first line says. */
  const runs: Readonly<Record<Language, readonly [name: string, run: (file: string) => Promise<string>]>> = {
    psql: ["connect.sh", (file) => inImage(["/bin/sh", file])],
    python: ["connect.py", (file) => inImage(["/usr/bin/python3", file])],
    ruby: ["connect.rb", (file) => inImage(["/usr/bin/ruby", file])],
    php: ["connect.php", (file) => inImage(["/usr/bin/php", file])],
    java: [
      "Connect.java",
      (file) => inImage(["/usr/lib/jvm/default-java/bin/java", "-cp", "/usr/share/java/postgresql.jar", file]),
    ],
    // The image has no pgx, and no access to modules: this language is tested where the host has it.
    go: [
      "connect.go",
      async (file) => {
        const cwd = dirname(file);
        const go = (...args: readonly string[]) => execute("go", args, { cwd });
        await go("mod", "init", "connect");
        await go("get", "github.com/jackc/pgx/v5");
        const { stdout } = await go("run", "connect.go");
        rmSync(join(cwd, "go.mod"));
        return stdout;
      },
    ],
    // The program is read from standard input, so that packages are resolved in the tests' directory.
    node: [
      "connect.mjs",
      async (file) => {
        const cwd = join(import.meta.dirname, "..");
        const child = spawn(process.execPath, ["--input-type=module", "-"], {
          cwd,
          stdio: ["pipe", "pipe", "inherit"],
        });
        child.stdin.end(readFileSync(file));
        const [output, [status]] = await Promise.all([text(child.stdout), once(child, "exit")]);
        expect(status).toBe(0);
        return output;
      },
    ],
  };

  /** Programs run as another user here, who may read only these files. */
  function giveFiles(): void {
    if (!asRoot) return;
    const client = join(platform.directory, "client");
    for (const each of [client, ...readdirSync(client, { recursive: true }).map((name) => join(client, String(name)))])
      chownSync(each, testUid, testUid);
    chownSync(directory, testUid, testUid);
  }

  async function run(language: Language, ...options: readonly string[]): Promise<string> {
    const [name, runFile] = runs[language];
    const program = await holdfast("services", "connect", "first", "--snippet", language, ...options);
    const folder = join(directory, language);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, name), program, { mode: 0o644 });
    giveFiles();
    return runFile(join(folder, name));
  }

  it.each(languages)("%s, as the page says and as it is", async (language) => {
    expect(page).toContain(`services connect first --snippet ${language} > ${runs[language][0]}\n`);
    expect(await run(language)).toMatch(/app_user[ |]+defaultdb/);
  });

  it.each(languages)("%s, as another user in another database", async (language) => {
    expect(await run(language, "--user", "reports", "--database", "shop")).toMatch(/reports[ |]+shop/);
  });

  it("verifies the name: an address with another certificate is refused", async () => {
    const folder = join(directory, "other");
    mkdirSync(folder);
    const program = await holdfast("services", "connect", "first", "--snippet", "python");
    writeFileSync(join(folder, "connect.py"), program.replace(/host=[^ ]+/, "host=other.example.com"));
    giveFiles();
    await expect(inImage(["/usr/bin/python3", join(folder, "connect.py")])).rejects.toThrow("does not match host name");
  });
});
