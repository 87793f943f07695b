import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Which packets of a machine are lost: all, those that it sends, or those that are sent to it. */
export type CutDirection = "both" | "from" | "to";

/** Cuts of the network between machines of one installation and everybody else, the host and its controllers too. */
export interface NetworkCuts {
  /** Nothing is refused: packets vanish, as they do when a cable is cut. */
  cut(address: string, direction: CutDirection): Promise<void>;
  /** All cuts of the address end. */
  heal(address: string): Promise<void>;
  close(): Promise<void>;
}

/** `number` is that of the installation; its watchdog removes what a test that was killed has left. */
export async function openNetworkCuts(number: string): Promise<NetworkCuts> {
  const table = `holdfast_cut_${number}`;
  const nft = (script: string) => run("sh", ["-c", `printf %s "$0" | nft --file -`, script]);
  const chains = ["input", "forward", "output"].map(
    (hook) => `chain ${hook} {
      type filter hook ${hook} priority -300; policy accept;
      ip saddr @from drop
      ip daddr @to drop
    }`,
  );
  const sets = ["from", "to"].map((name) => `set ${name} { type ipv4_addr; }`);
  await nft(`add table inet ${table}; delete table inet ${table}
    table inet ${table} {
      ${[...sets, ...chains].join("\n")}
    }`);

  const change = (verb: "add" | "delete", address: string, direction: CutDirection) => {
    const names = direction === "both" ? ["from", "to"] : [direction];
    return nft(names.map((name) => `${verb} element inet ${table} ${name} { ${address} }`).join("\n"));
  };

  return {
    cut: async (address, direction) => void (await change("add", address, direction)),
    async heal(address) {
      // What is not in a set cannot be taken out of it.
      await change("add", address, "both");
      await change("delete", address, "both");
    },
    close: async () => void (await nft(`add table inet ${table}; delete table inet ${table}`)),
  };
}
