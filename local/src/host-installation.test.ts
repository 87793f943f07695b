import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JoinFile } from "@holdfast/common/join-file.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createBlockClaims } from "./block-claims.ts";
import { clean } from "./clean.ts";
import { hostDeps } from "./host-deps.ts";
import { deleteHostInstallation, openHostInstallation } from "./host-installation.ts";
import { domainOf, openInstallation } from "./installation.ts";
import { appsUrlOf } from "./platform-children.ts";
import { layoutOf, makeHostDirectories } from "./layout.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-join-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const file: JoinFile = {
  installation_id: "inst",
  host_id: "second",
  address: "192.0.2.2:8450",
  controllers: ["192.0.2.1:8444"],
  ca_fingerprint: "ab",
  token: "secret",
  expires_at: "2026-01-01T00:10:00.000Z",
  taken_blocks: ["127.77", "127.79"],
};

function opened(name: string) {
  const layout = layoutOf(join(directory, name));
  makeHostDirectories(layout);
  const registry = createBlockClaims(join(directory, "registry"), Date.now);
  const options = { dataDir: layout.root };
  return { layout, registry, options };
}

test("a host gets unique addresses, and retains them", async () => {
  const { layout, registry, options } = opened("a");
  registry.renew({ directory: join(directory, "other"), block: "127.78" });
  const made = await openHostInstallation(layout, registry, options, file);
  expect(made).toMatchObject({
    isNew: true,
    installation: { id: "inst", loopback_block: "127.80", provider: "process" },
  });
  expect(made.installation.host).toEqual({ id: "second", listen: "192.0.2.2:8450" });
  const again = await openHostInstallation(layout, registry, { ...options, listen: "0.0.0.0:8450" }, undefined);
  expect(again).toMatchObject({
    isNew: false,
    installation: { loopback_block: "127.80", host: { listen: "0.0.0.0:8450" } },
  });
});

test.each([
  ["another host's file", {}, { ...file, host_id: "third" }, "belongs to host second of installation inst"],
  [
    "another installation's file",
    {},
    { ...file, installation_id: "other" },
    "belongs to host second of installation inst",
  ],
  ["another provider", { provider: "incus" as const }, file, "use another --data directory for incus"],
  ["other addresses", { addressBlock: "127.90" }, file, "have the addresses 127.78.*"],
])("a directory of a host refuses %s", async (_what, change, given, message) => {
  const { layout, registry, options } = opened("a");
  await openHostInstallation(layout, registry, options, file);
  await expect(openHostInstallation(layout, registry, { ...options, ...change }, given)).rejects.toThrow(message);
});

test("an empty directory without a join file is refused, and a host's directory is refused to a platform", async () => {
  const { layout, registry, options } = opened("a");
  await expect(openHostInstallation(layout, registry, options, undefined)).rejects.toThrow("is not a host yet");
  await openHostInstallation(layout, registry, options, file);
  await expect(openInstallation(layout, registry, { ports: {} })).rejects.toThrow("npm start -- host");
});

test("a platform's directory is refused to a host", async () => {
  const { layout, registry, options } = opened("a");
  await openInstallation(layout, registry, { ports: {} });
  await expect(openHostInstallation(layout, registry, options, file)).rejects.toThrow("its own controllers");
});

test("a domain is chosen at the first start", async () => {
  const { layout, registry } = opened("a");
  const created = await openInstallation(layout, registry, { ports: {}, domain: "db.example.com" });
  expect(domainOf(created)).toBe("db.example.com");
  expect(domainOf(await openInstallation(layout, registry, { ports: {} }))).toBe("db.example.com");
  await expect(openInstallation(layout, registry, { ports: {}, domain: "other.test" })).rejects.toThrow(
    `--domain: the names of ${layout.root} end with db.example.com; other.test needs another --data directory`,
  );
});

test("an installation of a release without domains has the default domain", async () => {
  const { layout, registry } = opened("a");
  const installation = await openInstallation(layout, registry, { ports: {} });
  expect(domainOf(installation)).toBe("local.holdfast.test");
  expect(appsUrlOf(installation)).toMatch(/^https:\/\/NAME-ID\.apps\.local\.holdfast\.test(:\d+)?$/);
  expect(readFileSync(layout.installation, "utf8")).not.toContain("domain");
  await openInstallation(layout, registry, { ports: {}, domain: "local.holdfast.test" });
});

test("a host that could not join may use other addresses, one that joined retains its own", async () => {
  const { layout, registry, options } = opened("a");
  const { installation } = await openHostInstallation(layout, registry, options, file);
  deleteHostInstallation(layout, registry, installation);
  const other = await openHostInstallation(layout, registry, { ...options, addressBlock: "127.90" }, file);
  expect(other.installation.loopback_block).toBe("127.90");
});

test("clean removes a host's directory and addresses", async () => {
  const { layout, registry, options } = opened("a");
  await openHostInstallation(layout, registry, options, file);
  await clean(layout.root, { ...hostDeps(), print: () => undefined, registryDir: join(directory, "registry") });
  expect(existsSync(layout.root)).toBe(false);
  expect(registry.renew({ directory: join(directory, "other"), block: "127.78" })).toBe(true);
});
