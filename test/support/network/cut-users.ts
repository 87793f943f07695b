import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { asRoot } from "../platform/platform-software.ts";

const run = promisify(execFile);

/** Why nothing can be cut here; undefined when something can. */
export const uncuttable = !asRoot ? "root" : existsSync("/usr/sbin/nft") ? undefined : "nftables";

/** Connections of programs that share their host's network, and so its address: known by whose they are. */
export interface UserLinks {
  /** Whatever these users connect to. */
  readonly uids: readonly number[];
  /** What this user connects to at this address. */
  readonly pairs: readonly (readonly [uid: number, address: string])[];
}

/** Their packets vanish both ways, also those of connections that are open, until what comes back is called. */
export async function cutUsers(number: string, { uids, pairs }: UserLinks): Promise<() => Promise<void>> {
  const table = `holdfast_cut_${number}`;
  const cut = "ct mark 0x00484643";
  // After connections are tracked: what one end is found by is known of the other end's packets, too.
  const chain = (hook: "output" | "input", rules = "") =>
    `chain ${hook} { type filter hook ${hook} priority -150; policy accept; ${rules} ${cut} drop; }`;
  const find = `meta skuid { ${uids.join(", ")} } ct mark set 0x00484643;
    meta skuid . ip daddr { ${pairs.map((pair) => pair.join(" . ")).join(", ")} } ct mark set 0x00484643;`;
  const forget = `add table inet ${table}; delete table inet ${table}`;
  await run("nft", [`${forget}; table inet ${table} {\n${chain("output", find)}\n${chain("input")}\n}`]);
  return async () => void (await run("nft", [forget]));
}
