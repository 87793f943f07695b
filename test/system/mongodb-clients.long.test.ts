import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { pymongo, runMongosh, runPythonMongodb } from "@holdfast/testing/engines/mongodb-programs.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { createServices, type RunningService } from "@holdfast/testing/platform/services.ts";
import { pythonEnvironment } from "@holdfast/testing/servers/python-environment.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const skip = await requireRecipes(import.meta.filename, "mongodb");
/** The first run downloads the clients. */
const withinMs = 600_000;

describe.skipIf(skip !== undefined || !asRoot)("clients of MongoDB's API", () => {
  let platform: Platform;
  let docs: RunningService;

  beforeAll(async () => {
    platform = await startPlatform();
    docs = await createServices(platform).createRunning("docs", { database_type: "mongodb" });
  });
  afterAll(() => platform?.remove());

  it(
    "in Python work by the service's URI, and get MongoDB's codes for what is refused",
    async () => {
      expect(await runPythonMongodb(platform, docs)).toEqual({
        inserted: 200,
        generated: true,
        bulk: [40, 1, 1],
        groups: [39, 40, 40, 40, 40],
        found: [197, 192, 187, 182, 177, 172, 167, 162, 157, 152],
        changed: "seven",
        indexes: ["_id_", "name_1__id_-1"],
        duplicate: 11_000,
        transaction: 20,
        left: 0,
        watch: 40_573,
        create_user: 13,
      });
    },
    withinMs,
  );

  it(
    "connect by the programs of the command line before the name resolves",
    async () => {
      const directory = mkdtempSync(join(tmpdir(), "holdfast-mongodb-"));
      const commandLine = createCommandLine({ HOLDFAST_DATA: platform.directory });
      try {
        symlinkSync(join(import.meta.dirname, "..", "node_modules"), join(directory, "node_modules"));
        for (const [language, program, file] of [
          ["python", join(await pythonEnvironment([pymongo]), "python3"), "connect.py"],
          ["node", process.execPath, "connect.mjs"],
        ] as const) {
          const { stdout: text } = await commandLine.run(["services", "connect", "docs", "--snippet", language]);
          writeFileSync(join(directory, file), text);
          const { stdout } = await promisify(execFile)(program, [join(directory, file)]);
          expect(stdout).toBe("app_user defaultdb\n");
        }
      } finally {
        commandLine.remove();
        rmSync(directory, { recursive: true });
      }
    },
    withinMs,
  );

  it(
    "in MongoDB's shell work as the command line starts it",
    async () => {
      const printed = await runMongosh(platform, docs, [
        "db.getName()",
        'db.shell.insertMany([{ _id: 1, name: "one" }, { _id: 2, name: "two" }])',
        "db.shell.find().sort({ _id: -1 })",
        "show collections",
        "show dbs",
        'db.createUser({ user: "intruder", pwd: "a secret", roles: [] })',
      ]);
      expect(printed).toContain("defaultdb");
      expect(printed).toMatch(/insertedIds: \{ '0': 1, '1': 2 \}/);
      expect(printed).toMatch(/_id: 2, name: 'two'[^]*_id: 1, name: 'one'/);
      expect(printed).toMatch(/^.*shell$/m);
      expect(printed).toContain("use the platform's API to manage users and roles");
      const evaluated = await runMongosh(platform, docs, [], ["--eval", "db.shell.countDocuments()"]);
      expect(evaluated.trim()).toBe("2");
    },
    withinMs,
  );
});
