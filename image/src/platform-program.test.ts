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
  const found = findHostEngines("postgresql", { PATH: `${root}/none:${root}/local/bin` }, `${root}/versions`);
  expect(found).toEqual([
    { program: "postgresql", version: "17", path: `${root}/versions/17` },
    { program: "postgresql", version: "9", path: `${root}/versions/9` },
    { program: "postgresql", version: undefined, path: `${root}/local` },
  ]);
});

test("a host without the program has none", () => {
  expect(findHostEngines("valkey", { PATH: hostWith("etcd") })).toEqual([]);
});
