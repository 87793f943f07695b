import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { installedKinds, installedPaths, unitNames } from "./installed-paths.ts";
import { launcherText, nodejsLink, unitText } from "./installed-program.ts";

const hasAnalyze = existsSync("/usr/bin/systemd-analyze");
const roots: string[] = [];
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});

function newPaths() {
  const root = mkdtempSync(join(tmpdir(), "holdfast-units-"));
  roots.push(root);
  return installedPaths(root);
}

describe.each(installedKinds)("the unit of a %s", (kind) => {
  it.skipIf(!hasAnalyze)("is accepted by systemd-analyze verify, without a warning", () => {
    const paths = newPaths();
    for (const path of [paths.units, paths.current]) mkdirSync(path, { recursive: true });
    symlinkSync(process.execPath, join(paths.current, nodejsLink));
    const file = join(paths.units, unitNames[kind]);
    writeFileSync(file, unitText(kind, paths, "/srv/holdfast"));
    const printed = execFileSync("systemd-analyze", ["verify", "--man=no", "--recursive-errors=no", file], {
      encoding: "utf8",
      stdio: "pipe",
    });
    expect(printed).toBe("");
  });

  it("leaves machines to the supervisor, and restarts it whenever it ends", () => {
    const lines = unitText(kind, installedPaths(), "/srv/holdfast").split("\n");
    expect(lines).toEqual(
      expect.arrayContaining(["KillMode=process", "OOMPolicy=continue", "Restart=always", "StartLimitIntervalSec=0"]),
    );
    expect(lines).toContain("RequiresMountsFor=/srv/holdfast /var/lib/holdfast/cache");
  });
});

it("the launcher passes its arguments to the current release", () => {
  const paths = newPaths();
  for (const path of [join(paths.current, "bin"), dirname(paths.launcher)]) mkdirSync(path, { recursive: true });
  symlinkSync(process.execPath, join(paths.current, nodejsLink));
  writeFileSync(
    join(paths.current, "bin", "holdfast.js"),
    "console.log(JSON.stringify([process.env.HOLDFAST_CACHE, process.argv.slice(2)]))",
  );
  writeFileSync(paths.launcher, launcherText(paths), { mode: 0o755 });
  const { HOLDFAST_CACHE: _, ...environment } = process.env;
  const printed = execFileSync(paths.launcher, ["services", "a b"], { encoding: "utf8", env: environment });
  expect(JSON.parse(printed)).toEqual([paths.cache, ["services", "a b"]]);
});
