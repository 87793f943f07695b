import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { asRoot } from "../platform/platform-software.ts";

const run = promisify(execFile);

/** Reason why nothing can be cut here; undefined when something can. */
export const cutsUnavailable = !asRoot ? "root" : existsSync("/usr/sbin/nft") ? undefined : "nftables";

/** Connections of programs that share their host's network, and so its address: identified by user. */
export interface UserLinks {
  /** All connections of these users. */
  readonly uids: readonly number[];
  /** Connections of this user to this address. */
  readonly pairs: readonly (readonly [uid: number, address: string])[];
}

/** Drops the packets of these links both ways, also on open connections, until the returned function is called. */
export async function cutUserLinks(number: string, { uids, pairs }: UserLinks): Promise<() => Promise<void>> {
  const table = `holdfast_cut_${number}`;
  const cut = "ct mark 0x00484643";
  // After connection tracking: a rule for one end's user also matches the other end's packets.
  const chain = (hook: "output" | "input", rules = "") =>
    `chain ${hook} { type filter hook ${hook} priority -150; policy accept; ${rules} ${cut} drop; }`;
  const find = `meta skuid { ${uids.join(", ")} } ct mark set 0x00484643;
    meta skuid . ip daddr { ${pairs.map((pair) => pair.join(" . ")).join(", ")} } ct mark set 0x00484643;`;
  const forget = `add table inet ${table}; delete table inet ${table}`;
  await run("nft", [`${forget}; table inet ${table} {\n${chain("output", find)}\n${chain("input")}\n}`]);
  return async () => void (await run("nft", [forget]));
}
