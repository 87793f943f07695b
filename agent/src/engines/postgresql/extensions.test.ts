import { readFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createPostgresqlDriver } from "./driver.ts";

const page = readFileSync(join(import.meta.dirname, "../../../../docs/reference/extensions.md"), "utf8");

/** Names in the first column of the tables below a heading of the page. */
function namesBelow(heading: string): string[] {
  const [, section = ""] = page.split(`\n## ${heading}\n`);
  const [text = ""] = section.split("\n## ");
  const cells = text.split("\n").flatMap((line) => (line.startsWith("| `") ? [line.split("|")[1] ?? ""] : []));
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name)).toSorted();
}

for (const version of ["17", "18"])
  describe.skipIf(!hasEngine("postgresql", version))(`extensions of PostgreSQL ${version}`, () => {
    let machine: EngineMachine;
    const query = async <R>(sql: string) => {
      const client = await connectPostgresql(machine, { user: "app_user", password: "secret" });
      try {
        return (await client.query<R & Record<string, unknown>>(sql)).rows;
      } finally {
        await client.end();
      }
    };

    const isInVersion = (name: string) => version !== "17" || name !== "pg_logicalinspect";

    beforeAll(async () => {
      machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, {
        users: [create(EngineUserSchema, { username: "app_user", role: "admin", verifier: scramVerifier("secret") })],
      });
      await machine.bringUp();
    });
    afterAll(() => machine?.remove());

    it("are on the page: those that users create, and all that they cannot", async () => {
      const available = await query<{ name: string; trusted: boolean }>(
        `SELECT DISTINCT name, trusted FROM pg_available_extension_versions
         WHERE name NOT IN (SELECT extname FROM pg_extension) ORDER BY name`,
      );
      const names = (isTrusted: boolean) =>
        available.filter(({ trusted }) => trusted === isTrusted).map(({ name }) => name);
      expect(namesBelow("Extensions that you create")).toEqual(names(true));
      expect(namesBelow("Extensions that are refused").filter(isInVersion)).toEqual(names(false));
    });

    it("are created by the owner, and refused by name otherwise", async () => {
      for (const name of namesBelow("Extensions that you create")) await query(`CREATE EXTENSION "${name}" CASCADE`);
      for (const name of namesBelow("Extensions that are refused").filter(isInVersion))
        await expect(query(`CREATE EXTENSION "${name}"`), name).rejects.toThrow(
          `permission denied to create extension "${name}"`,
        );
      for (const name of namesBelow("Extensions that the image lacks"))
        await expect(query(`CREATE EXTENSION "${name}"`), name).rejects.toThrow(`extension "${name}" is not available`);
    });
  });
