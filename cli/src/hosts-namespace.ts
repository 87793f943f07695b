import { execFileSync } from "node:child_process";
import type { ClientProgram } from "./client-program.ts";
import type { PrivateFiles } from "./private-files.ts";
import { readFileSync } from "node:fs";

const systemHosts = "/etc/hosts";
/** Programs that run their arguments in a mount namespace: of root, and of other users where the kernel permits it. */
const unshare = ["unshare", "--mount"];
const unshareUser = [...unshare, "--user", "--map-current-user", "--keep-caps"];
const bindAndRun = `mount --bind "$0" ${systemHosts} && exec "$@"`;

/**
 * The program in a mount namespace in which a name resolves to an address. Undefined if this host does not permit it.
 */
export function withHostName(
  program: ClientProgram,
  { host, address }: { readonly host: string; readonly address: string },
  files: Pick<PrivateFiles, "write">,
): ClientProgram | undefined {
  const hosts = files.write("hosts", `${address} ${host}\n${readHosts()}`);
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
