import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { findHostEngines } from "./platform-program.ts";

function hostWith(...executables: string[]): string {
  const root = mkdtempSync(join(tmpdir(), "holdfast-host-"));
  for (const path of executables) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), "");
    chmodSync(join(root, path), 0o755);
  }
  return root;
}

test("versioned PostgreSQL directories come newest first, then PATH", () => {
  const root = hostWith(
    "versions/9/bin/postgres",
    "versions/17/bin/postgres",
    "local/bin/postgres",
    "versions/18/bin/psql",
  );
  const found = findHostEngines("postgresql", "17", { PATH: `${root}/none:${root}/local/bin` }, `${root}/versions`);
  expect(found).toEqual([
    { program: "postgresql", version: "17", path: `${root}/versions/17` },
    { program: "postgresql", version: "9", path: `${root}/versions/9` },
    { program: "postgresql", version: undefined, path: `${root}/local` },
  ]);
});

test("each version of a program is found by its own server", () => {
  const root = hostWith("one/mongod", "other/postgres");
  const PATH = `${root}/one:${root}/other`;
  const pathsOf = (version: string) => findHostEngines("mongodb", version, { PATH }).map(({ path }) => path);
  expect(pathsOf("8.0")).toEqual([root]);
  expect(findHostEngines("mongodb", "8.0", { PATH: `${root}/other` })).toEqual([]);
  expect(findHostEngines("mongodb", "ferretdb-2", { PATH: `${root}/one` })).toEqual([]);
});

test("a host without the program has none", () => {
  expect(findHostEngines("valkey", "8.1", { PATH: hostWith("etcd") })).toEqual([]);
});
