import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { opensearchVerifier } from "@holdfast/testing/engines/opensearch-clients.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { asRoot, programDirectory, testProgram, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { startTemporaryProcess } from "@holdfast/testing/platform/temporary-process.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { openBulkTarget, type BulkTarget } from "../support/bulk-target.ts";

const image = testProgram("opensearch", "2.19");
const home = "/usr/local/share/opensearch/opensearch-2.19.4";
const login = { user: "app_user", password: "a-password-of-the-bench" };

export interface BareOpensearch extends BulkTarget {
  /** Time from the start of the engine's own launcher to the first document over TLS. */
  readonly wallMs: number;
  remove(): Promise<void>;
}

/**
 * One node of the node image by the engine's own launcher, which itself terminates TLS: the same security plugin, a
 * user with a password of the same cost, the given heap, and one processor, as a service of tier-1 has.
 */
export async function startBareOpensearch(heapMb: number): Promise<BareOpensearch> {
  const directory = programDirectory("bench-opensearch");
  const [port = 0, transport = 0] = await freePorts(2);
  const { cert, key } = await createTestCertificate();
  const path = (name: string) => join(directory, name);
  await mkdir(path("conf/opensearch-security"), { recursive: true });
  for (const name of ["data", "logs", "tmp"]) await mkdir(path(name));
  const files = { pemcert_filepath: "node.pem", pemkey_filepath: "node.key", pemtrustedcas_filepath: "node.pem" };
  const tls = (layer: string) =>
    Object.fromEntries(Object.entries(files).map(([name, file]) => [`plugins.security.ssl.${layer}.${name}`, file]));
  const settings = {
    "path.data": path("data"),
    "path.logs": path("logs"),
    "network.host": "127.0.0.1",
    "http.port": port,
    "transport.port": transport,
    "discovery.type": "single-node",
    "node.store.allow_mmap": false,
    "plugins.security.allow_default_init_securityindex": true,
    "plugins.security.authcz.admin_dn": ["CN=nobody"],
    "plugins.security.ssl.transport.enforce_hostname_verification": false,
    "plugins.security.ssl.http.enabled": true,
    ...tls("transport"),
    ...tls("http"),
  };
  const write = (name: string, content: string) => writeFile(path(`conf/${name}`), content);
  await write("node.pem", cert);
  await write("node.key", key);
  // JSON is YAML.
  await write("opensearch.yml", JSON.stringify(settings));
  await write("jvm.options", `-Xms${heapMb}m\n-Xmx${heapMb}m\n-XX:+UseG1GC\n-Djava.security.manager=allow\n`);
  await write(
    "log4j2.properties",
    "appender.console.type = Console\nappender.console.name = console\nappender.console.layout.type = PatternLayout\n" +
      "appender.console.layout.pattern = [%c{1}] %m%n\nrootLogger.level = info\nrootLogger.appenderRef.console.ref = console\n",
  );
  await writeSecurity(write);
  await runProgram("chown", ["-R", `${testUid}:${testUid}`, directory]);
  await chmod(path("conf"), 0o700);
  const environment = [
    "OPENSEARCH_JAVA_HOME=/usr/lib/jvm/default-java",
    `OPENSEARCH_PATH_CONF=${path("conf")}`,
    `OPENSEARCH_TMPDIR=${path("tmp")}`,
    `HOME=${directory}`,
  ];
  // Files of the distribution's archive are not executable in the image.
  const argv = ["/usr/bin/env", ...environment, "/bin/bash", `${home}/bin/opensearch`];
  const { command, args } = image.launch({ argv, uid: testUid, binds: [directory], asRoot });
  const startedAt = performance.now();
  const onProcessor = ["--cpu-list", "0", command, ...args];
  const running = await startTemporaryProcess({ command: "taskset", args: onProcessor }, /\] started/);
  const target = openBulkTarget({ host: "localhost", address: "127.0.0.1", port, ca: cert, ...login });
  await waitUntil("a document is written", () => target.put("first", "1", {}).catch(() => undefined), {
    withinMs: 600_000,
    everyMs: 20,
  });
  return {
    ...target,
    wallMs: performance.now() - startedAt,
    async remove() {
      await target.close();
      await running.end("SIGTERM");
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** The first contents of the security index: one user with the plugin's role for everything. */
async function writeSecurity(write: (name: string, content: string) => Promise<void>): Promise<void> {
  const file = (type: string, entries: object = {}) =>
    JSON.stringify({ _meta: { type, config_version: 2 }, ...entries });
  const basic = {
    http_enabled: true,
    order: 0,
    http_authenticator: { type: "basic", challenge: true },
    authentication_backend: { type: "internal" },
  };
  const all = {
    config: file("config", { config: { dynamic: { authc: { basic } } } }),
    internal_users: file("internalusers", {
      [login.user]: { hash: opensearchVerifier(login.password), backend_roles: ["admin"] },
    }),
    roles: file("roles"),
    roles_mapping: file("rolesmapping", { all_access: { backend_roles: ["admin"] } }),
    action_groups: file("actiongroups"),
    tenants: file("tenants"),
    nodes_dn: file("nodesdn"),
    allowlist: file("allowlist", { config: { enabled: false } }),
  };
  for (const [name, content] of Object.entries(all)) await write(`opensearch-security/${name}.yml`, content);
}
