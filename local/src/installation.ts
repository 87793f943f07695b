import { randomUUID } from "node:crypto";
import type { BlockRegistry } from "./block-registry.ts";
import { readJson, writeAtomically } from "./files.ts";
import type { Layout } from "./layout.ts";
import type { Ports } from "./ports.ts";
import { busyPorts, portsOf } from "./ports.ts";
import { UserError } from "./user-error.ts";

/** What an installation is, chosen at its first start and kept. */
export interface Installation {
  readonly id: string;
  readonly ports: Ports;
  /** First two octets of its machines' addresses. */
  readonly loopback_block: string;
}

/** The installation of the directory, made at the first call. Wished ports replace those that were kept. */
export async function openInstallation(
  layout: Layout,
  registry: BlockRegistry,
  wished: Partial<Ports>,
): Promise<Installation> {
  const existing = readJson<Installation>(layout.installation);
  const installation =
    existing === undefined
      ? await newInstallation(layout, registry, wished)
      : { ...existing, ports: { ...existing.ports, ...wished } };
  const { loopback_block: block } = installation;
  if (!registry.keep({ directory: layout.root, block })) {
    throw new UserError(
      `another installation of this host uses the addresses ${block}.*; is ${layout.root} a copy of it?`,
    );
  }
  if (JSON.stringify(installation) !== JSON.stringify(existing)) {
    writeAtomically(layout.installation, `${JSON.stringify(installation, null, 2)}\n`, 0o644);
  }
  return installation;
}

async function newInstallation(layout: Layout, registry: BlockRegistry, wished: Partial<Ports>): Promise<Installation> {
  const block = await registry.claim(layout.root, async (candidate) => {
    // Busy ports of the user's own choice are the user's to hear about; others only rule the block out.
    const busy = await busyPorts(portsOf(candidate));
    return busy.every((name) => wished[name] !== undefined);
  });
  return { id: randomUUID(), ports: { ...portsOf(block), ...wished }, loopback_block: block };
}
