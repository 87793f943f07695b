import { connect } from "node:net";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { type CertificateStore, certificateCommands } from "./certificate-store.ts";
import { backendKinds, backendName, serverName } from "./haproxy-config.ts";
import { challengesOf, hostsOf, loginsOf, type RouteTable } from "./route-table.ts";

/** Files that commands name. */
export interface HaproxyFiles {
  /** The map of hosts. */
  readonly hostsFile: string;
  /** The map of login forms. */
  readonly loginsFile: string;
  /** The map of open challenges. */
  readonly challengesFile: string;
  readonly certificates: CertificateStore;
}

/**
 * Commands by which a running HAProxy gets the routes of another table with as many backends. A host is removed before
 * the servers and the login form of its backend change, and added after them: no request gets to another app's machine,
 * or past a form.
 */
export function commandsBetween(
  before: RouteTable,
  after: RouteTable,
  { hostsFile, loginsFile, challengesFile, certificates }: HaproxyFiles,
): string[] {
  const [former, hosts] = [hostsOf(before), hostsOf(after)];
  const removed = [...former].filter(([host, number]) => hosts.get(host) !== number);
  const added = [...hosts].filter(([host, number]) => former.get(host) !== number);
  const servers = after.backends.flatMap(({ servers: next }, number) => {
    const current = before.backends[number]?.servers ?? [];
    return Array.from({ length: Math.max(current.length, next.length) }, (_, at) => {
      if (current[at] === next[at]) return [];
      return backendKinds.flatMap((kind) => serverCommands(`${backendName(kind, number)}/${serverName(at)}`, next[at]));
    }).flat();
  });
  const { first, last } = certificateCommands(before, after, certificates);
  return [
    ...first,
    ...removed.map(([host]) => `del map ${hostsFile} ${host}`),
    ...mapCommands(loginsOf(before), loginsOf(after), loginsFile),
    ...mapCommands(challengesOf(before), challengesOf(after), challengesFile),
    ...servers,
    ...added.map(([host, number]) => `add map ${hostsFile} ${host} ${number}`),
    ...last,
  ];
}

function mapCommands<K extends string | number>(
  before: ReadonlyMap<K, string>,
  after: ReadonlyMap<K, string>,
  file: string,
): string[] {
  const isChanged = ([key, value]: [K, string]) => before.get(key) !== value;
  return [
    // A changed entry is set, so that there is no time without a form.
    ...[...after]
      .filter(isChanged)
      .map(([key, value]) => `${before.has(key) ? "set" : "add"} map ${file} ${key} ${value}`),
    ...[...before.keys()].filter((key) => !after.has(key)).map((key) => `del map ${file} ${key}`),
  ];
}

function serverCommands(server: string, node: string | undefined): string[] {
  const rest = `set server ${server} state maint`;
  if (node === undefined) return [rest];
  const { host, port } = endpointOf(node);
  return [rest, `set server ${server} addr ${host} port ${port}`, `set server ${server} state ready`];
}

/** Outputs of commands that worked. */
const accepted = [
  /^$/,
  /^(no need to change the addr|IP changed from|port changed from) .*$/,
  /^New empty certificate store '.*'!$/,
  /^Transaction (created|updated) for certificate .*!$/,
  /^(Committing|Inserting certificate) [^]*\bSuccess!$/,
  /^(Entry '.*' deleted in crtlist '.*'|Certificate '.*' deleted)!$/,
];

/** Sends commands, one after another. Throws for the first that HAProxy does not accept. */
export async function runCommands(socket: string, commands: readonly string[], signal: AbortSignal): Promise<void> {
  for (const command of commands) {
    const output = (await sendCommand(socket, command, signal)).trim();
    // The other lines of a command are a certificate with its key.
    const [first = ""] = command.split("\n", 1);
    // The last word of an entry may be a key of sessions.
    const line = first.replace(/^((?:add|set) map \S+ \S+) .*/, "$1");
    if (!accepted.some((form) => form.test(output))) throw new Error(`HAProxy did not accept "${line}": ${output}`);
  }
}

/** Sends one command to the socket of HAProxy, and resolves with its output. */
export function sendCommand(path: string, command: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path, signal });
    let output = "";
    socket.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    socket.once("error", reject);
    socket.once("close", () => resolve(output));
    socket.write(`${command}\n`);
  });
}
