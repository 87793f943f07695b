import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { installedPaths } from "../installed/installed-paths.ts";
import { parseSettings } from "../installed/settings-file.ts";
import {
  controllerHostSettings,
  controllerSettingsFile,
  controllerUnits,
  etcdFilesIn,
  etcdFlagsOf,
  etcdUid,
  writeControllerHost,
} from "./controller-host.ts";
import type { ControllerJoinFile } from "./controller-join-file.ts";
import { controllerUnitNames, controllerUnitText } from "./controller-units.ts";

const file: ControllerJoinFile = {
  kind: "controller",
  installation_id: "id",
  address: "192.0.2.2",
  addresses: ["192.0.2.1", "192.0.2.2", "2001:db8::3"],
  domain: "svc.example.com",
  history: "192.0.2.9",
  objects: "s3://backups?endpoint=https://s3.example.com",
  etcd_state: "new",
  secrets: { master_keys: "master", bootstrap: "{}", history_password: "password", objects_key: "{}" },
  authority: "authority",
  etcd: { certificate: "etcd certificate", key: "etcd key" },
  controller: { certificate: "controller certificate", key: "controller key" },
};

const roots: string[] = [];
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});
function newPaths() {
  const root = mkdtempSync(join(tmpdir(), "holdfast-host-"));
  roots.push(root);
  return installedPaths(root);
}

describe("the settings of a host", () => {
  const { etcd, controller, dns } = controllerHostSettings(file, installedPaths());

  it("name the other hosts and the host's own listeners", () => {
    expect(controller).toMatchObject({
      HOLDFAST_CONTROLLER_ID: "controller-2",
      HOLDFAST_ETCD: "https://192.0.2.1:2379,https://192.0.2.2:2379,https://[2001:db8::3]:2379",
      HOLDFAST_HISTORY_URL: "postgres://holdfast@192.0.2.9:5432/holdfast",
      HOLDFAST_API_LISTEN: "192.0.2.2:8443",
      HOLDFAST_DNS_SERVERS: "192.0.2.1:53,192.0.2.2:53,[2001:db8::3]:53",
      HOLDFAST_MASTER_KEY_FILE: "/etc/holdfast/keys/master-key.json",
      HOLDFAST_CA_FILE: "/var/lib/holdfast/controller/ca.pem",
    });
    expect(dns).toMatchObject({
      HOLDFAST_CONTROLLERS: "192.0.2.1:8444,192.0.2.2:8444,[2001:db8::3]:8444",
      HOLDFAST_DNS_LISTEN: "192.0.2.2:53",
      HOLDFAST_DNS_IDENTITY_DIR: controller["HOLDFAST_DNS_IDENTITY_DIR"],
    });
  });

  it("are those of a member of etcd, by etcd's own names", () => {
    expect(etcd).toMatchObject({
      ETCD_NAME: "controller-2",
      ETCD_LISTEN_PEER_URLS: "https://192.0.2.2:2380",
      ETCD_INITIAL_CLUSTER:
        "controller-1=https://192.0.2.1:2380,controller-2=https://192.0.2.2:2380,controller-3=https://[2001:db8::3]:2380",
      ETCD_INITIAL_CLUSTER_STATE: "new",
      ETCD_INITIAL_CLUSTER_TOKEN: "id",
      ETCD_CLIENT_CERT_AUTH: "true",
      ETCD_PEER_CLIENT_CERT_AUTH: "true",
      ETCD_TRUSTED_CA_FILE: "/var/lib/holdfast/controller/etcd/pki/ca.crt",
      ETCD_DATA_DIR: "/var/lib/holdfast/controller/etcd/data",
    });
    expect(etcdFlagsOf({ ...etcd, HOLDFAST_CACHE: "/x", PATH: "/bin" })).toEqual(
      expect.arrayContaining(["--name=controller-2", "--client-cert-auth=true", "--election-timeout=1000"]),
    );
    expect(etcdFlagsOf({ PATH: "/bin" })).toEqual([]);
  });
});

describe.skipIf(process.getuid?.() !== 0)("the files of a host", () => {
  it("have modes and owners by which only their program reads them", () => {
    const paths = newPaths();
    writeControllerHost(file, paths);
    writeControllerHost(file, paths);
    const of = (path: string) => {
      const { mode, uid } = statSync(join(paths.settings, path));
      return [(mode & 0o777).toString(8), uid];
    };
    expect(of("")).toEqual(["755", 0]);
    for (const path of ["keys", "pki"]) expect(of(path)).toEqual(["700", 0]);
    for (const name of ["master-key.json", "bootstrap.json", "history-password", "objects-key.json", "join.json"])
      expect(of(join("keys", name))).toEqual(["600", 0]);
    for (const unit of controllerUnits) expect(of(`${unit}.env`)).toEqual(["600", 0]);
    const ofEtcd = dirname(etcdFilesIn(paths).key);
    for (const path of [ofEtcd, dirname(ofEtcd)]) expect(statSync(path)).toMatchObject({ uid: etcdUid, mode: 0o40700 });
    expect(statSync(etcdFilesIn(paths).key)).toMatchObject({ uid: etcdUid, mode: 0o100600 });
    expect(readFileSync(join(paths.settings, "pki", "tls.crt"), "utf8")).toBe("controller certificate");
    expect(parseSettings(readFileSync(controllerSettingsFile(paths, "dns"), "utf8"))).toEqual(
      controllerHostSettings(file, paths).dns,
    );
  });
});

describe("the units of a host", () => {
  const programs = { controller: "/opt/holdfast/controller.mjs", dns: "/opt/holdfast/dns.mjs" };

  it.skipIf(!existsSync("/usr/bin/systemd-analyze"))(
    "are accepted by systemd-analyze verify, without a warning",
    () => {
      const paths = newPaths();
      mkdirSync(paths.units, { recursive: true });
      const code = { node: process.execPath, directory: "/opt/holdfast", programs };
      const files = controllerUnits.map((unit) => {
        const path = join(paths.units, controllerUnitNames[unit]);
        writeFileSync(path, controllerUnitText(unit, code, paths));
        return path;
      });
      const verify = ["verify", "--man=no", "--recursive-errors=no", ...files];
      expect(execFileSync("systemd-analyze", verify, { encoding: "utf8", stdio: "pipe" })).toBe("");
    },
  );

  it("read the operator's settings after their own", () => {
    const text = controllerUnitText("dns", { node: "/node", directory: "/code", programs }, installedPaths());
    expect(text).toContain("EnvironmentFile=/etc/holdfast/dns.env\nEnvironmentFile=-/etc/holdfast/local.env\n");
    expect(text).toContain("ExecStart=/node /opt/holdfast/dns.mjs\n");
  });
});
