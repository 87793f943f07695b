import { filesKeyPrefixes } from "@holdfast/common/engine-catalog/files.ts";
import type { ConfigFile, Instance } from "../engine-driver.ts";
import { type Server, servers } from "./layout.ts";

/** Access of the keys of each server. */
const accessOf = { writers: "readwrite", readers: "readonly" } as const satisfies Record<Server, string>;

/**
 * The keys of both servers. A key may use every bucket, of which there is one: the role `admin` of the server does
 * that. The other API of this role is on the socket that nothing connects to.
 */
export function keyFiles({ spec }: Pick<Instance, "spec">): ConfigFile[] {
  return servers.map((server) => {
    const access = accessOf[server];
    const keys = spec.users.filter(
      ({ username, role }) => role === access && username.startsWith(filesKeyPrefixes[access]),
    );
    const accounts = keys
      .toSorted((a, b) => (a.username < b.username ? -1 : 1))
      .map(({ username, verifier }) => [username, { access: username, secret: verifier, role: "admin" }]);
    const content = `${JSON.stringify({ accessAccounts: Object.fromEntries(accounts) }, undefined, 1)}\n`;
    return { name: `${server}/users.json`, content, mode: 0o640 };
  });
}
