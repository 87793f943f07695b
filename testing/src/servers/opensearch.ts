import { chmodSync, copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { Agent, request } from "undici";
import { oneAtATime } from "../controller/claim.ts";
import { createTestCertificate } from "../controller/test-certificate.ts";
import { freePorts } from "../platform/free-ports.ts";
import { asRoot, testUid } from "../platform/platform-software.ts";
import { waitUntil } from "../wait-until.ts";
import { missingProgram, runHostProgram, startHostProgram } from "./host-program.ts";

/** OpenSearch with its security plugin: TLS by a self-signed certificate, and users with privileges. */
export interface OpenSearch {
  /** `https://127.0.0.1:<port>`. */
  readonly url: string;
  /** A user who may only write to the indexes of exports. */
  readonly user: { readonly username: string; readonly password: string };
  /** Sends a request as an administrator; resolves with the parsed JSON of the response. */
  send(method: "GET" | "PUT" | "POST", path: string, body?: object): Promise<Readonly<Record<string, unknown>>>;
  remove(): Promise<void>;
}

const openSearchVersion = "2.19.4";
const artifacts = [
  `org.opensearch.distribution.integ-test-zip:opensearch:${openSearchVersion}:zip`,
  `org.opensearch.plugin:opensearch-security:${openSearchVersion}.0:zip`,
];
const unpack = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:unpack";
const user = { username: "shipper", password: "shipper-of-tests" };
/** Hash of that password, by bcrypt. */
const passwordHash = "$2y$08$abcdefghijklmnopqrstuuMjlzyw2yhPYc9bXzKLR6vunRimFZErW";

/** Privileges of the user of a search cluster by docs/how-to/exports.md. */
const shipperRole = {
  reserved: false,
  cluster_permissions: ["cluster:monitor/main", "indices:data/write/bulk"],
  index_permissions: [
    {
      index_patterns: ["platform-platform-metrics", "platform-platform-logs"],
      allowed_actions: [
        "indices:admin/create",
        "indices:admin/auto_create",
        "indices:admin/mapping/auto_put",
        "indices:admin/mapping/put",
        "indices:data/write*",
      ],
    },
  ],
};

/** A running one, or the reason why this host cannot have it. */
export async function startOpenSearch(): Promise<OpenSearch | string> {
  const missing = await missingProgram("mvn", "java");
  if (missing !== undefined) return missing;
  const cached = join(cacheDirectory(process.env), "judges", `opensearch-${openSearchVersion}`);
  const failed = await oneAtATime("opensearch", () => fetchOnce(cached)).catch((error: unknown) => String(error));
  if (failed !== undefined) return failed;
  const directory = mkdtempSync(join(tmpdir(), "holdfast-opensearch-"));
  const home = join(directory, "opensearch");
  await runHostProgram("cp", "-r", cached, home);
  const [port = 0, transportPort = 0] = await freePorts(2);
  await configure(home, port, transportPort);
  if (asRoot) await runHostProgram("chown", "-R", `${testUid}:${testUid}`, directory);
  const java = (await runHostProgram("sh", "-c", 'readlink -f "$(command -v java)"')).trim();
  const environment = [
    `OPENSEARCH_JAVA_HOME=${dirname(dirname(java))}`,
    "OPENSEARCH_JAVA_OPTS=-Xms512m -Xmx512m",
    `HOME=${directory}`,
  ];
  const argv = ["env", ...environment, join(home, "bin", "opensearch")];
  const running = await startHostProgram(argv, /\] started/, { asTestUser: true });
  const url = `https://127.0.0.1:${port}`;
  const agent = new Agent({ connect: { rejectUnauthorized: false } });
  const authorization = `Basic ${Buffer.from(`admin:${user.password}`).toString("base64")}`;

  async function send(method: "GET" | "PUT" | "POST", path: string, body?: object) {
    const headers = { authorization, "content-type": "application/json" };
    const sent = body === undefined ? null : JSON.stringify(body);
    const response = await request(`${url}${path}`, { method, headers, body: sent, dispatcher: agent });
    if (response.statusCode >= 400) throw new Error(`${path}: ${response.statusCode} ${await response.body.text()}`);
    return (await response.body.json()) as Readonly<Record<string, unknown>>;
  }

  const remove = async () => {
    await running.end("SIGKILL");
    await agent.destroy();
    rmSync(directory, { recursive: true, force: true });
  };
  await waitUntil("its users are there", () => send("GET", "/").catch(() => undefined), {
    withinMs: 60_000,
    everyMs: 500,
  });
  return { url, user, send: send, remove };
}

async function fetchOnce(directory: string): Promise<undefined> {
  if (existsSync(directory)) return;
  await mkdir(dirname(directory), { recursive: true });
  const making = await mkdtemp(`${directory}.`);
  for (const [index, artifact] of artifacts.entries())
    await runHostProgram(
      "mvn",
      "-q",
      "-B",
      unpack,
      `-Dartifact=${artifact}`,
      `-DoutputDirectory=${join(making, String(index))}`,
      `-DmarkersDirectory=${join(making, "markers")}`,
    );
  const home = join(making, "0", `opensearch-${openSearchVersion}`);
  await rename(join(making, "1"), join(home, "plugins", "opensearch-security"));
  await rename(home, directory);
  await rm(making, { recursive: true });
  for (const name of readdirSync(join(directory, "bin"))) chmodSync(join(directory, "bin", name), 0o755);
}

async function configure(home: string, port: number, transportPort: number): Promise<void> {
  const { cert, key } = await createTestCertificate();
  const config = join(home, "config");
  writeFileSync(join(config, "node.pem"), cert);
  writeFileSync(join(config, "node.key"), key);
  const files = { pemcert_filepath: "node.pem", pemkey_filepath: "node.key", pemtrustedcas_filepath: "node.pem" };
  const tls = (layer: string) =>
    Object.fromEntries(Object.entries(files).map(([name, file]) => [`plugins.security.ssl.${layer}.${name}`, file]));
  const settings = {
    "network.host": "127.0.0.1",
    "http.port": port,
    "transport.port": transportPort,
    "discovery.type": "single-node",
    "cluster.routing.allocation.disk.threshold_enabled": false,
    "plugins.security.allow_default_init_securityindex": true,
    "plugins.security.authcz.admin_dn": ["CN=nobody"],
    "plugins.security.ssl.transport.enforce_hostname_verification": false,
    "plugins.security.ssl.http.enabled": true,
    ...tls("transport"),
    ...tls("http"),
  };
  // JSON is YAML.
  const lines = Object.entries(settings).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  writeFileSync(join(config, "opensearch.yml"), `${lines.join("\n")}\n`);
  const security = join(config, "opensearch-security");
  await mkdir(security, { recursive: true });
  const shipped = join(home, "plugins", "opensearch-security", "config");
  for (const name of readdirSync(shipped).filter((each) => each.endsWith(".yml")))
    copyFileSync(join(shipped, name), join(security, name));
  const write = (name: string, type: string, entries: object) =>
    writeFileSync(join(security, `${name}.yml`), JSON.stringify({ _meta: { type, config_version: 2 }, ...entries }));
  write("internal_users", "internalusers", {
    admin: { hash: passwordHash, reserved: false, backend_roles: ["admin"] },
    [user.username]: { hash: passwordHash, reserved: false },
  });
  write("roles", "roles", { shipper: shipperRole });
  write("roles_mapping", "rolesmapping", {
    all_access: { reserved: false, backend_roles: ["admin"] },
    shipper: { reserved: false, users: [user.username] },
  });
}
