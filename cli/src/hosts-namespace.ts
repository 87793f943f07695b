import { execFileSync } from "node:child_process";
import type { ClientProgram } from "./client-program.ts";
import type { PrivateFiles } from "./private-files.ts";
import { readFileSync } from "node:fs";

const systemHosts = "/etc/hosts";
/** Programs that run their arguments in a mount namespace: of root, and of other users where the kernel permits it. */
const unshare = ["unshare", "--mount"];
const unshareUser = [...unshare, "--user", "--map-current-user", "--keep-caps"];
const bindAndRun = `mount --bind "$0" ${systemHosts} && exec "$@"`;

export interface HostName {
  readonly host: string;
  readonly address: string;
}

/**
 * The program in a mount namespace in which names resolve to addresses. Undefined if this host does not permit it.
 */
export function withHostNames(
  program: ClientProgram,
  names: readonly HostName[],
  files: Pick<PrivateFiles, "write">,
): ClientProgram | undefined {
  const lines = names.map(({ host, address }) => `${address} ${host}\n`);
  const hosts = files.write("hosts", `${lines.join("")}${readHosts()}`);
  const prefix = [...(process.getuid?.() === 0 ? unshare : unshareUser), "sh", "-c", bindAndRun, hosts];
  const [command = "", ...args] = prefix;
  try {
    execFileSync(command, [...args, "true"], { stdio: "ignore", timeout: 5_000 });
  } catch {
    return undefined;
  }
  return { command, args: [...args, program.command, ...program.args] };
}

function readHosts(): string {
  try {
    return readFileSync(systemHosts, "utf8");
  } catch {
    return "";
  }
}
