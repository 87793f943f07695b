import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Packets of a machine that are lost: all, those that it sends, or those that are sent to it. */
export type CutDirection = "both" | "from" | "to";

/** Source and destination address of packets in one direction. */
export type Link = readonly [from: string, to: string];

/** Cuts of the network of one installation's machines. Nothing is rejected: packets vanish, as with a cut cable. */
export interface NetworkCuts {
  /** Cuts the machine off from all others, including the host and its controllers. */
  cut(address: string, direction: CutDirection): Promise<void>;
  /** Ends all cuts of the address. */
  heal(address: string): Promise<void>;
  /** Cuts only the traffic between these addresses. */
  cutLinks(links: readonly Link[]): Promise<void>;
  healLinks(links: readonly Link[]): Promise<void>;
  close(): Promise<void>;
}

/** Traffic between clients on the host and engines: cut links exempt it. */
export interface ClientsOfHost {
  readonly address: string;
  /** Ports of engines. */
  readonly ports: readonly number[];
}

/** `number`: number of the installation, whose watchdog removes the remains of a test that was killed. */
export async function openNetworkCuts(number: string, clients?: ClientsOfHost): Promise<NetworkCuts> {
  const table = `holdfast_cut_${number}`;
  const nft = (script: string) => run("sh", ["-c", `printf %s "$0" | nft --file -`, script]);
  const links =
    clients === undefined
      ? ""
      : `ip saddr ${clients.address} tcp dport { ${clients.ports.join(", ")} } accept
      ip daddr ${clients.address} tcp sport { ${clients.ports.join(", ")} } accept
      ip saddr . ip daddr @links drop`;
  const chains = ["input", "forward", "output"].map(
    (hook) => `chain ${hook} {
      type filter hook ${hook} priority -300; policy accept;
      ip saddr @from drop
      ip daddr @to drop
      ${links}
    }`,
  );
  const sets = ["from", "to"].map((name) => `set ${name} { type ipv4_addr; }`);
  sets.push("set links { type ipv4_addr . ipv4_addr; }");
  await nft(`add table inet ${table}; delete table inet ${table}
    table inet ${table} {
      ${[...sets, ...chains].join("\n")}
    }`);

  const change = (verb: "add" | "delete", address: string, direction: CutDirection) => {
    const names = direction === "both" ? ["from", "to"] : [direction];
    return nft(names.map((name) => `${verb} element inet ${table} ${name} { ${address} }`).join("\n"));
  };

  const changeLinks = async (verb: "add" | "delete", changed: readonly Link[]) => {
    const elements = changed.map(([from, to]) => `${from} . ${to}`).join(", ");
    if (changed.length > 0) await nft(`${verb} element inet ${table} links { ${elements} }`);
  };

  return {
    cutLinks: (cut) => changeLinks("add", cut),
    async healLinks(cut) {
      // nftables fails to delete an element that is not in the set.
      await changeLinks("add", cut);
      await changeLinks("delete", cut);
    },
    cut: async (address, direction) => void (await change("add", address, direction)),
    async heal(address) {
      // nftables fails to delete an element that is not in the set.
      await change("add", address, "both");
      await change("delete", address, "both");
    },
    close: async () => void (await nft(`add table inet ${table}; delete table inet ${table}`)),
  };
}
