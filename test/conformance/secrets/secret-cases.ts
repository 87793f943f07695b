import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { dumpEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { logFiles } from "@holdfast/testing/platform/platform-logs.ts";
import { argumentsAndEnvironment } from "@holdfast/testing/platform/platform-processes.ts";
import type { RunningService } from "@holdfast/testing/platform/services.ts";
import { contentOf, filesBelow, type Planted, plantSecrets, type SecretsUnderTest } from "./planted-secrets.ts";

/** Texts in which a provider may store its input, beyond the places that every platform has: text by location. */
export type ProviderTexts = () => Promise<ReadonlyMap<string, string | Buffer>>;

/** Asserts that no secret is stored or logged anywhere it must not be. */
export function secretCases(open: () => Promise<SecretsUnderTest>, textsOfProvider?: ProviderTexts): void {
  describe("secrets", () => {
    let platform: Platform;
    let postgresql: RunningService;
    let planted: Planted[];

    beforeAll(async () => {
      const fixture = await open();
      ({ platform, postgresql } = fixture);
      planted = await plantSecrets(fixture);
    });

    /** Names of the secrets in the text, in plain text or as basic credentials. */
    function found(text: string | Buffer): string[] {
      return [...new Set(planted.filter(({ secret }) => text.includes(secret)).map(({ name }) => name))];
    }

    it("are many, and each is long", () => {
      expect(planted.length).toBeGreaterThan(15);
      expect(planted.filter(({ secret }) => secret.length < 16).map(({ name }) => name)).toEqual([]);
    });

    it("are not in etcd", async () => {
      const dump = await dumpEtcd(platform.directory);
      expect([...dump.values()].join("\n")).toContain(postgresql.service.hostname);
      for (const [key, value] of dump) expect({ key, found: found(key + value) }).toEqual({ key, found: [] });
    });

    it("are not in files of etcd, history, objects and DNS, which contain old states", () => {
      for (const folder of ["etcd", "history", "objects", "dns"]) {
        for (const file of filesBelow(join(platform.directory, folder), (name) => !/\.(key|pem)$/.test(name))) {
          expect({ file, found: found(contentOf(file)) }).toEqual({ file, found: [] });
        }
      }
    });

    it("are not in history", async () => {
      const rows = await dumpHistory(platform.directory);
      expect(rows.join("\n")).toContain(postgresql.service.id);
      for (const row of rows) expect(found(row)).toEqual([]);
    });

    it("are not in any log", () => {
      const files = logFiles(platform.directory);
      expect(files.map(contentOf).join("\n")).toContain(postgresql.service.id);
      for (const file of files) {
        const lines = contentOf(file).toString("utf8").split("\n");
        expect(lines.flatMap((line) => found(line).map((name) => `${file}: ${name}`))).toEqual([]);
      }
    });

    it("are not in arguments and environments of processes", () => {
      const { all } = platform.processes();
      expect(all.length).toBeGreaterThan(8);
      for (const pid of all) {
        const { cmdline, environ } = argumentsAndEnvironment(pid);
        expect({ cmdline, found: found(cmdline + environ) }).toEqual({ cmdline, found: [] });
      }
    });

    it("are not in bodies of errors", () => {
      expect(platform.errorBodies.length).toBeGreaterThan(3);
      for (const body of platform.errorBodies) expect(found(body)).toEqual([]);
    });

    it("are in files that only their owner may read", () => {
      const readable = filesBelow(platform.directory, () => true).filter((file) => {
        const stat = statSync(file, { throwIfNoEntry: false });
        return stat !== undefined && (stat.mode & 0o044) !== 0 && isReachable(file, platform.directory);
      });
      expect(readable.filter((file) => found(contentOf(file)).length > 0)).toEqual([]);
    });

    if (textsOfProvider === undefined) return;
    it("are not with the machine provider, nor in arguments and environments of processes in machines", async () => {
      const texts = await textsOfProvider();
      const [node] = postgresql.service.nodes;
      expect([...texts.values()].some((text) => text.includes(node?.id ?? "none"))).toBe(true);
      for (const [place, text] of texts) expect({ place, found: found(text) }).toEqual({ place, found: [] });
    });
  });
}

/** True if other users can traverse every directory above it. */
function isReachable(file: string, root: string): boolean {
  const parts = file
    .slice(root.length + 1)
    .split("/")
    .slice(0, -1);
  return parts.every((_, index) => {
    const stat = statSync(join(root, ...parts.slice(0, index + 1)), { throwIfNoEntry: false });
    return stat !== undefined && (stat.mode & 0o001) !== 0;
  });
}

/** Every row of every table of the history database, as text. */
async function dumpHistory(directory: string): Promise<string[]> {
  const { ports } = JSON.parse(readFileSync(join(directory, "installation.json"), "utf8"));
  const client = new Client({
    host: "127.0.0.1",
    port: ports.history,
    user: "holdfast",
    database: "holdfast",
    password: readFileSync(join(directory, "keys", "history-password"), "utf8").trim(),
    ssl: { ca: readFileSync(join(directory, "pki", "controller", "ca.crt")) },
  });
  await client.connect();
  try {
    const tables = await client.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
    );
    const rows: string[] = [];
    for (const { name } of tables.rows) {
      const { rows: found } = await client.query<{ row: string }>(`SELECT t::text AS row FROM ${name} AS t`);
      rows.push(...found.map(({ row }) => row));
    }
    return rows;
  } finally {
    await client.end();
  }
}
