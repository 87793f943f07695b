import { type AdditionVariable, additionSources } from "@holdfast/image/catalog.ts";
import { integer, list, type Setting, text, type ValuesOf } from "@holdfast/common/config.ts";

/** Settings by their variables. */
const additionSettings = Object.fromEntries(
  Object.values(additionSources).map(({ variable, description }) => [variable, text(variable, description, "")]),
) as Readonly<Record<AdditionVariable, Setting<string>>>;

/** Settings of a host with machines: its provider, and the locations of machines, disks and images. */
export const providerSettings = {
  provider: text(
    "HOLDFAST_PROVIDER",
    "Compute provider: process or incus; none for controllers whose machines are all on other hosts",
    "process",
  ),
  processDir: text("HOLDFAST_PROCESS_DIR", "Directory of this host's machines", ""),
  storageTiers: list(
    "HOLDFAST_STORAGE_TIERS",
    "Storage tiers of this host, the default one first: maxiops=/mnt/nvme,standard=/mnt/disks, or names only for tiers whose data disks are in the directories of their machines",
    "maxiops,standard",
  ),
  incusSocket: text("HOLDFAST_INCUS_SOCKET", "Unix socket of the Incus daemon", "/var/lib/incus/unix.socket"),
  incusUrl: text(
    "HOLDFAST_INCUS_URL",
    "https://host:port of the Incus daemon, instead of its socket; the daemon must share this host's file system",
    "",
  ),
  incusCert: text("HOLDFAST_INCUS_CERT", "File with the client certificate for Incus over HTTPS", ""),
  incusKey: text("HOLDFAST_INCUS_KEY", "File with the key of the client certificate for Incus", ""),
  incusServerCert: text(
    "HOLDFAST_INCUS_SERVER_CERT",
    "File with the daemon's certificate (server.crt in its directory); any other is refused",
    "",
  ),
  incusTokenFile: text(
    "HOLDFAST_INCUS_TOKEN_FILE",
    "File with a token of `incus config trust add`, which makes the daemon trust the client certificate, and identifies the daemon without HOLDFAST_INCUS_SERVER_CERT",
    "",
  ),
  incusProject: text("HOLDFAST_INCUS_PROJECT", "Incus project, for Holdfast only", "holdfast"),
  incusPool: text("HOLDFAST_INCUS_POOL", "Incus storage pool for the machines' roots", "holdfast"),
  incusTierPools: list(
    "HOLDFAST_INCUS_TIER_POOLS",
    "Incus storage pools for the roots of machines by storage tier, such as standard=slow; roots of other tiers are in HOLDFAST_INCUS_POOL",
  ),
  incusAddressBlock: text(
    "HOLDFAST_INCUS_ADDRESS_BLOCK",
    "First two octets of the addresses of Incus machines; the first address is the host's",
    "10.77",
  ),
  publicAddresses: text(
    "HOLDFAST_PUBLIC_ADDRESSES",
    "Network of public addresses for this host's machines, such as 203.0.113.16/28, routed to the host; empty: a machine's private address is its public one",
    "",
  ),
  loopbackBlock: text("HOLDFAST_LOOPBACK_BLOCK", "First two octets of the machines' loopback addresses", "127.77"),
  preparedDisks: integer("HOLDFAST_SPARES", "Number of data disks prepared in advance for each image", 2),
  imagesDir: text("HOLDFAST_IMAGES_DIR", "Directory of the node images"),
  ...additionSettings,
} as const;

export type ProviderSettings = ValuesOf<typeof providerSettings>;
