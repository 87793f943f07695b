import { X509Certificate } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseControllerJoinFile } from "./controller-join-file.ts";
import { joinFileOf, prepareControllers, prepareReplacement } from "./prepared-directory.ts";

const addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
const now = Date.parse("2030-01-31T12:00:00Z");
let root: string;
let directory: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-prepared-"));
  directory = join(root, "prepared");
  writeFileSync(join(root, "s3.json"), '{"id": "a", "secret": "b"}');
});
afterEach(() => rmSync(root, { recursive: true }));

const prepare = () =>
  prepareControllers(
    directory,
    {
      domain: "svc.example.com",
      history: "history.example.com",
      objects: "s3://backups?endpoint=https://s3.example.com",
      objectsKey: join(root, "s3.json"),
      addresses,
    },
    now,
  );
const joined = (address: string) => parseControllerJoinFile(readFileSync(joinFileOf(directory, address), "utf8"));
const modeOf = (...path: string[]) => (statSync(join(directory, ...path)).mode & 0o777).toString(8);

test("each host gets the shared secrets, and certificates of the directory's authority for its address", async () => {
  const { joinFiles } = await prepare();
  expect(joinFiles).toEqual(addresses.map((address) => joinFileOf(directory, address)));
  const [first, second] = [joined("192.0.2.1"), joined("192.0.2.2")];
  expect(first).toMatchObject({ address: "192.0.2.1", addresses, domain: "svc.example.com", etcd_state: "new" });
  expect(second.secrets).toEqual(first.secrets);
  expect(second.installation_id).toBe(first.installation_id);
  expect(JSON.parse(first.secrets.bootstrap)).toMatchObject({ username: "admin", organization: "default" });
  const authority = new X509Certificate(first.authority);
  for (const { certificate } of [first.etcd, first.controller]) {
    const parsed = new X509Certificate(certificate);
    expect(parsed.verify(authority.publicKey)).toBe(true);
    expect(parsed.checkIP("192.0.2.1")).toBe("192.0.2.1");
    expect(parsed.checkIP("192.0.2.2")).toBeUndefined();
    expect(parsed.validToDate.getTime() - now).toBe(365 * 86_400_000);
  }
  const history = new X509Certificate(readFileSync(join(directory, "history", "tls.crt")));
  expect(history.checkHost("history.example.com")).toBe("history.example.com");
  expect(existsSync(join(directory, "history", "tls.key"))).toBe(true);
});

test("only its owner reads the directory", async () => {
  await prepare();
  expect(modeOf()).toBe("700");
  for (const path of ["shared", "history"]) expect(modeOf(path)).toBe("700");
  for (const name of readdirSync(directory).filter((each) => each.endsWith(".json"))) expect(modeOf(name)).toBe("600");
  for (const name of ["master-key.json", "bootstrap.json", "history-password", "objects-key.json", "ca.key"])
    expect(modeOf("shared", name)).toBe("600");
});

test("a further call retains secrets and the authority, and renews certificates", async () => {
  await prepare();
  const before = joined("192.0.2.3");
  await prepareControllers(directory, { addresses: [] }, now + 1_000);
  const after = joined("192.0.2.3");
  expect(after).toEqual({ ...before, etcd: after.etcd, controller: after.controller });
  expect(after.etcd.certificate).not.toBe(before.etcd.certificate);
  expect(after.controller.key).not.toBe(before.controller.key);
});

test("a call after one that ended between two files continues", async () => {
  await prepare();
  const { installation_id: id, secrets } = joined("192.0.2.1");
  for (const name of readdirSync(directory)) if (name !== "shared") rmSync(join(directory, name), { recursive: true });
  rmSync(join(directory, "shared", "ca.crt"));
  await prepare();
  expect(joined("192.0.2.1")).toMatchObject({ installation_id: id, secrets });
  const { authority, etcd } = joined("192.0.2.2");
  expect(new X509Certificate(etcd.certificate).verify(new X509Certificate(authority).publicKey)).toBe(true);
});

test("a refused argument writes nothing", async () => {
  await expect(prepareControllers(directory, { addresses }, now)).rejects.toThrow("--domain is missing");
  writeFileSync(join(root, "s3.json"), "{}");
  await expect(prepare()).rejects.toThrow("--objects-key:");
  rmSync(join(root, "s3.json"));
  await expect(prepare()).rejects.toThrow(`--objects-key: there is no file ${join(root, "s3.json")}`);
  expect(existsSync(directory)).toBe(false);
});

test("the host that replaces a lost one joins an etcd that runs, also after a further call", async () => {
  await prepare();
  const before = joined("192.0.2.2");
  await prepareReplacement(directory, "192.0.2.2", now);
  await prepareControllers(directory, { addresses: [] }, now);
  expect(joined("192.0.2.2")).toMatchObject({ etcd_state: "existing", secrets: before.secrets });
  expect(joined("192.0.2.1").etcd_state).toBe("new");
});

test("a file that is not the join file of a controller is refused, without its content", async () => {
  await prepare();
  const text = readFileSync(joinFileOf(directory, "192.0.2.1"), "utf8");
  const changed = (change: object) => JSON.stringify({ ...JSON.parse(text), ...change });
  expect(() => parseControllerJoinFile(text.slice(0, -10))).toThrow("it is not JSON");
  expect(() => parseControllerJoinFile("[]")).toThrow("it has no content");
  expect(() => parseControllerJoinFile('{"host_id": "second", "token": "x"}')).toThrow("holdfast install host");
  expect(() => parseControllerJoinFile(changed({ secrets: {} }))).toThrow("it has no master_keys");
  expect(() => parseControllerJoinFile(changed({ etcd: undefined }))).toThrow("it has no etcd");
  expect(() => parseControllerJoinFile(changed({ etcd_state: "old" }))).toThrow("etcd_state");
  expect(() => parseControllerJoinFile(changed({ address: "192.0.2.7" }))).toThrow("not one of its addresses");
});
