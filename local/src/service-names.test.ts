import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { DnsServer } from "@holdfast/dns/dns-server.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startZoneServer } from "@holdfast/testing/servers/zone-server.ts";
import { namesNotice, removeNames, runDnsCommand } from "./dns-command.ts";
import { hostDeps } from "./host-deps.ts";
import type { ServedNames } from "./resolver-methods.ts";
import { installNames, type NamesHost, thisHost, uninstallNames } from "./service-names.ts";

const domain = "names.holdfast.test";
const name = `orders-k3v9q2zt.local.${domain}`;
const names: ServedNames = {
  domain,
  server: { host: "127.0.0.1", port: 8445 },
  resolverAddress: "127.252.0.53",
  records: [{ name, addresses: ["127.252.0.5"] }],
};
const plain = "search lan\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n";
const links = "Global:\nLink 2 (eth0): 192.0.2.1\nLink 3 (wlan0):\n";

let root: string;
let owner: string;
let printed: string[];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-names-"));
  owner = join(root, "data");
  mkdirSync(owner);
  printed = [];
  write("etc/hosts", "127.0.0.1 localhost\n");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(file: string, text: string): void {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), text);
}

const read = (file: string) => (existsSync(join(root, file)) ? readFileSync(join(root, file), "utf8") : undefined);

/** A host whose names resolve once one of the files has the text; commands have these outputs. */
function hostWith(outputs: Readonly<Record<string, string>>, effective: Readonly<Record<string, string>>) {
  const commands: string[] = [];
  const host: NamesHost = {
    root,
    serves: async () => true,
    print: (line) => void printed.push(line),
    async run(command, args) {
      commands.push([command, ...args].join(" "));
      if (command !== "getent") return outputs[command];
      return Object.entries(effective).some(([file, text]) => read(file)?.includes(text)) ? "found" : undefined;
    },
  };
  return { host, commands };
}

test.each([
  {
    title: "systemd-resolved",
    before: { "etc/resolv.conf": "nameserver 127.0.0.53\n" },
    outputs: { resolvectl: links },
    file: "etc/systemd/resolved.conf.d/holdfast.conf",
    text: `[Resolve]\nDNS=127.0.0.1:8445\nDomains=~${domain}\n`,
    reload: "systemctl restart systemd-resolved.service",
  },
  {
    title: "dnsmasq of NetworkManager",
    before: { "etc/resolv.conf": plain, "etc/NetworkManager/conf.d/dns.conf": "[main]\ndns=dnsmasq\n" },
    outputs: {},
    file: "etc/NetworkManager/dnsmasq.d/holdfast.conf",
    text: `server=/${domain}/127.0.0.1#8445\n`,
    reload: "nmcli general reload dns-full",
  },
  {
    title: "resolv.conf",
    before: { "etc/resolv.conf": plain },
    outputs: {},
    file: "etc/resolv.conf",
    text: `# holdfast begin OWNER\nnameserver 127.252.0.53\n# holdfast end OWNER\n${plain}`,
  },
  {
    title: "hosts file",
    before: { "etc/resolv.conf": `${plain}options rotate\n` },
    outputs: {},
    file: "etc/hosts",
    text: `127.0.0.1 localhost\n# holdfast begin OWNER\n127.252.0.5 ${name}\n# holdfast end OWNER\n`,
  },
])("$title has the host resolve the names, twice is once, and uninstalling restores each file", async (method) => {
  const { title, before, outputs, file, text, reload } = method;
  for (const [each, content] of Object.entries(before)) write(each, content);
  const original = read(file);
  const expected = text.replaceAll("OWNER", owner);
  const { host, commands } = hostWith(outputs, { [file]: "holdfast begin" });
  await installNames(host, owner, names);
  await installNames(host, owner, names);
  expect(read(file)).toContain(expected);
  expect(read(file)?.match(/holdfast begin/g)).toHaveLength(1);
  expect(printed[0]).toBe(`names below ${domain} resolve on this host, by ${title} (/${file})`);
  expect(commands.includes(reload ?? "getent ahosts ns1.names.holdfast.test")).toBe(true);
  expect(await uninstallNames(host, owner)).toEqual([title]);
  expect(read(file)).toBe(original);
  expect(await uninstallNames(host, owner)).toEqual([]);
});

test.each([
  ["global servers, to which its domain would apply", { resolvectl: "Global: 192.0.2.9\nLink 2 (eth0): 192.0.2.1\n" }],
  ["no other server, so that other names would have none", { resolvectl: "Global:\nLink 2 (eth0):\n" }],
  [
    "a global server in a separate line",
    { resolvectl: "Global: 192.0.2.8\n        192.0.2.9\nLink 2 (eth0): 192.0.2.1\n" },
  ],
])("systemd-resolved is unchanged with %s", async (_, outputs) => {
  write("etc/resolv.conf", "nameserver 127.0.0.53\n");
  const { host } = hostWith(outputs, { "etc/hosts": name });
  await installNames(host, owner, names);
  expect(printed[0]).toContain("by hosts file");
  expect(read("etc/systemd/resolved.conf.d/holdfast.conf")).toBeUndefined();
});

test("a method without effect is undone before the next one", async () => {
  write("etc/resolv.conf", plain);
  const { host } = hostWith({}, { "etc/hosts": name });
  await installNames(host, owner, names);
  expect(printed[0]).toContain("by hosts file");
  expect(read("etc/resolv.conf")).toBe(plain);
});

test("without a method that works the host is as before", async () => {
  write("etc/resolv.conf", plain);
  const { host } = hostWith({}, {});
  await expect(installNames(host, owner, names)).rejects.toThrow("point your resolver at 127.0.0.1:8445");
  expect([read("etc/resolv.conf"), read("etc/hosts")]).toEqual([plain, "127.0.0.1 localhost\n"]);
});

test("a second installation uses the hosts file, and lines of a removed one go", async () => {
  write("etc/resolv.conf", plain);
  const { host } = hostWith({}, { "etc/resolv.conf": "holdfast begin", "etc/hosts": "holdfast begin" });
  await installNames(host, owner, names);
  const second = join(root, "second");
  mkdirSync(second);
  await installNames(host, second, names);
  expect(printed.at(-2)).toContain("by hosts file");
  rmSync(owner, { recursive: true });
  await installNames(host, second, names);
  expect(printed.at(-1)).toContain("by resolv.conf");
  expect(read("etc/resolv.conf")).not.toContain(`${owner}\n`);
});

test("a server that does not respond changes nothing", async () => {
  write("etc/resolv.conf", plain);
  const { host } = hostWith({}, { "etc/hosts": name });
  const silent = { ...host, serves: async () => false };
  await expect(installNames(silent, owner, names)).rejects.toThrow("start the installation first");
  expect(read("etc/resolv.conf")).toBe(plain);
});

test("without root nothing changes, and clean names the command", async () => {
  write("etc/resolv.conf", plain);
  const { host } = hostWith({}, { "etc/resolv.conf": "holdfast begin" });
  const deps = { ...hostDeps(), asRoot: false, print: host.print };
  await expect(runDnsCommand(["install", "--data", owner], deps, host)).rejects.toThrow("run it as root");
  await installNames(host, owner, names);
  await removeNames(owner, deps, host);
  expect(printed.at(-1)).toContain(`holdfast dns uninstall --data ${owner}`);
  expect(read("etc/resolv.conf")).toContain("127.252.0.53");
  await removeNames(owner, { ...deps, asRoot: true }, host);
  expect(read("etc/resolv.conf")).toBe(plain);
});

test("npm start says that names do not resolve, until they do", async () => {
  write("etc/resolv.conf", plain);
  const { host } = hostWith({}, { "etc/resolv.conf": "holdfast begin" });
  const installation = { id: "i", loopback_block: "127.252", ports: {} as never, domain };
  const notice = () => namesNotice(installation, owner, "./bin/holdfast.js", host);
  expect(await notice()).toBe(
    "Names of services do not resolve on this host yet; as root: ./bin/holdfast.js dns install",
  );
  await installNames(host, owner, names);
  expect(await notice()).toBeUndefined();
});

// The host's own getent sees the files of the test in a mount namespace.
const run = promisify(execFile);
const canMount =
  process.getuid?.() === 0 &&
  (await run("unshare", ["--mount", "true"]).then(
    () => true,
    () => false,
  ));

describe.skipIf(!canMount)("the resolver of the C library", () => {
  const servers: DnsServer[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.close();
  });
  const serve = async (host: string, origin: string, records: Readonly<Record<string, string>>) =>
    servers.push(await startZoneServer({ host, directory: join(root, host), origin, records }));

  test.each(["resolv.conf", "hosts file"])("resolves a service by %s, and its other names as before", async (title) => {
    await serve("127.252.0.53", domain, { [name]: "127.252.0.5" });
    await serve("127.252.0.54", "other.test", { "www.other.test": "192.0.2.7" });
    const rotate = title === "hosts file" ? " rotate" : "";
    write("etc/resolv.conf", `nameserver 127.252.0.54\noptions timeout:1 attempts:1${rotate}\n`);
    const inNamespace = (command: string, args: readonly string[]) => {
      const binds = ["hosts", "resolv.conf"].map((file) => `mount --bind ${root}/etc/${file} /etc/${file}`);
      const script = [...binds, 'exec "$@"'].join(" && ");
      return run("unshare", ["--mount", "sh", "-c", script, "sh", command, ...args]).then(
        ({ stdout }) => stdout,
        () => undefined,
      );
    };
    const host = { ...thisHost((line) => void printed.push(line)), root, run: inNamespace };
    const nameServer = { name: `ns1.${domain}`, addresses: ["127.252.0.53"] };
    const records = [nameServer, ...names.records];
    await installNames(host, owner, { ...names, server: { host: "127.252.0.53", port: 53 }, records });
    expect(printed[0]).toContain(`by ${title}`);
    expect(await inNamespace("getent", ["ahostsv4", name])).toMatch(/^127\.252\.0\.5 /);
    expect(await inNamespace("getent", ["ahostsv4", "www.other.test"])).toMatch(/^192\.0\.2\.7 /);
    expect(await inNamespace("getent", ["hosts", "localhost"])).toContain("localhost");
    await uninstallNames(host, owner);
    expect(await inNamespace("getent", ["ahostsv4", name])).toBeUndefined();
  });
});
