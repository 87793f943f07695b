import { integer, list, readConfig, text } from "@holdfast/common/config.ts";

/** Every setting of a controller; the reference page in the docs is printed from here. */
export const settings = {
  installationId: text("HOLDFAST_INSTALLATION_ID", "Id of the installation; it is in every certificate"),
  controllerId: text("HOLDFAST_CONTROLLER_ID", "Id of this controller among the others; empty makes a random one", ""),
  etcd: list("HOLDFAST_ETCD", "URLs of the etcd members", "http://127.0.0.1:2379"),
  etcdCa: text("HOLDFAST_ETCD_CA", "File with the authority of etcd's certificates; empty for plain HTTP", ""),
  etcdCert: text("HOLDFAST_ETCD_CERT", "File with the client certificate for etcd", ""),
  etcdKey: text("HOLDFAST_ETCD_KEY", "File with the key of the client certificate for etcd", ""),
  historyUrl: text("HOLDFAST_HISTORY_URL", "URL of the PostgreSQL that keeps events and audit, without a password"),
  historyPasswordFile: text("HOLDFAST_HISTORY_PASSWORD_FILE", "File with the password of the history database"),
  historyCa: text(
    "HOLDFAST_HISTORY_CA",
    "File with the authority of the history database's certificate; empty for none",
    "",
  ),
  masterKeyFile: text("HOLDFAST_MASTER_KEY_FILE", "File with the key-encryption keys of the installation"),
  apiListen: list("HOLDFAST_API_LISTEN", "Each host:port that serves REST and gRPC", "127.0.0.1:8443"),
  baseUrl: text("HOLDFAST_BASE_URL", "URL that clients reach the API by", "https://127.0.0.1:8443"),
  agentListen: list(
    "HOLDFAST_AGENT_LISTEN",
    "Each host:port that serves agents, DNS servers and other controllers",
    "127.0.0.1:8444",
  ),
  agentAdvertise: text(
    "HOLDFAST_AGENT_ADVERTISE",
    "host:port that agents dial; empty means the first that listens",
    "",
  ),
  domain: text("HOLDFAST_DOMAIN", "Origin of the zone that service names are in", "local.holdfast.test"),
  objects: text("HOLDFAST_OBJECTS", "file:// URL of the directory for payloads and snapshots"),
  provider: text(
    "HOLDFAST_PROVIDER",
    "Where machines come from: process or incus; none for controllers whose machines are all on other hosts",
    "process",
  ),
  processDir: text("HOLDFAST_PROCESS_DIR", "Directory of this host's machines", ""),
  storageTiers: list(
    "HOLDFAST_STORAGE_TIERS",
    "Storage tiers of this host, the default one first: maxiops=/mnt/nvme,standard=/mnt/disks, or the names alone where data disks of a tier are to be with everything else",
    "maxiops,standard",
  ),
  vmPlans: list(
    "HOLDFAST_VM_PLANS",
    "Plans that are offered as virtual machines besides, each as <plan>-vm, for hosts that can run them, such as tier-4,tier-8",
    "",
  ),
  incusSocket: text("HOLDFAST_INCUS_SOCKET", "Unix socket of the Incus daemon", "/var/lib/incus/unix.socket"),
  incusUrl: text(
    "HOLDFAST_INCUS_URL",
    "https://host:port of the Incus daemon, in place of its socket; it needs the host's paths all the same",
    "",
  ),
  incusCert: text("HOLDFAST_INCUS_CERT", "File with the client certificate for Incus over HTTPS", ""),
  incusKey: text("HOLDFAST_INCUS_KEY", "File with the key of the client certificate for Incus", ""),
  incusServerCert: text(
    "HOLDFAST_INCUS_SERVER_CERT",
    "File with the daemon's own certificate (server.crt in its directory); any other is refused",
    "",
  ),
  incusTokenFile: text(
    "HOLDFAST_INCUS_TOKEN_FILE",
    "File with a token of `incus config trust add`, by which the daemon comes to trust the client certificate, and is known itself without HOLDFAST_INCUS_SERVER_CERT",
    "",
  ),
  incusProject: text("HOLDFAST_INCUS_PROJECT", "Project of Incus that is Holdfast's own", "holdfast"),
  incusPool: text("HOLDFAST_INCUS_POOL", "Storage pool of Incus for the machines' roots", "holdfast"),
  incusTierPools: list(
    "HOLDFAST_INCUS_TIER_POOLS",
    "Storage pools of Incus for the roots of machines of some storage tiers, such as standard=slow; others are in HOLDFAST_INCUS_POOL",
  ),
  incusAddressBlock: text(
    "HOLDFAST_INCUS_ADDRESS_BLOCK",
    "First two numbers of the addresses of Incus machines; the first address is the host's",
    "10.77",
  ),
  memoryOvercommit: integer(
    "HOLDFAST_MEMORY_OVERCOMMIT",
    "How many times its memory a host may promise to machines; the process provider of the controllers' own host asks only what is free",
    2,
  ),
  diskOvercommit: integer(
    "HOLDFAST_DISK_OVERCOMMIT",
    "How many times its disk, and its pools for roots, a host may promise to machines, whose disks are sparse; 0 where only what is free counts",
    0,
  ),
  hostId: text("HOLDFAST_HOST_ID", "Name of the controllers' own host among the hosts", "local"),
  zone: text("HOLDFAST_ZONE", "Zone of the controllers' own host", "local"),
  publicAddresses: text(
    "HOLDFAST_PUBLIC_ADDRESSES",
    "Network of public addresses for this host's machines, such as 203.0.113.16/28, routed to the host; empty: a machine's private address is its public one",
    "",
  ),
  loopbackBlock: text("HOLDFAST_LOOPBACK_BLOCK", "First two numbers of the machines' loopback addresses", "127.77"),
  spares: integer("HOLDFAST_SPARES", "Data disks made ahead for each image", 2),
  waitingMachines: integer(
    "HOLDFAST_WAITING_MACHINES",
    "PostgreSQL machines that run ahead of demand, at least; each takes 40 MB of memory, and none waits where the host is short",
    2,
  ),
  waitingMachinesMax: integer(
    "HOLDFAST_WAITING_MACHINES_MAX",
    "Machines that run ahead of demand, at most: as many as were wanted at once within the last hour; 0 for none",
    20,
  ),
  imagesDir: text("HOLDFAST_IMAGES_DIR", "Directory of the node images"),
  dnsServers: list("HOLDFAST_DNS_SERVERS", "host:port of every authoritative DNS server"),
  bootstrapFile: text(
    "HOLDFAST_BOOTSTRAP_FILE",
    "File with the first credentials; empty when they are there already",
    "",
  ),
  caFile: text("HOLDFAST_CA_FILE", "File to write the trusted authorities to; empty for none", ""),
  dnsIdentityDir: text(
    "HOLDFAST_DNS_IDENTITY_DIR",
    "Directory to write a DNS server's identity to; empty for none",
    "",
  ),
  defaultAllowedCidrs: list(
    "HOLDFAST_DEFAULT_ALLOWED_CIDRS",
    "Networks (CIDRs) that a new service lets in when its request names none",
  ),
  rateLimit: integer(
    "HOLDFAST_RATE_LIMIT",
    "Requests that one credential may make in a minute on each controller; 0 for no limit",
    600_000,
  ),
  sampleIntervalMs: integer("HOLDFAST_SAMPLE_INTERVAL_MS", "Milliseconds between two samples of a machine", 15_000),
  leaseS: integer("HOLDFAST_CONTROLLER_LEASE_S", "Seconds after which another controller takes over", 5),
  machineCertificateS: integer(
    "HOLDFAST_MACHINE_CERTIFICATE_S",
    "Life of a machine's certificates in seconds",
    30 * 86_400,
  ),
  agentUpgrade: text("HOLDFAST_AGENT_UPGRADE", "on, or off: agents of running machines stay what they are", "on"),
  agentUpgradeShares: list(
    "HOLDFAST_AGENT_UPGRADE_SHARES",
    "Percent of the machines whose agents have a new release, stage by stage, after the first machine alone",
    "5,25,100",
  ),
  agentUpgradeSoakS: integer(
    "HOLDFAST_AGENT_UPGRADE_SOAK_S",
    "Seconds for which upgraded machines are watched before the next stage",
    300,
  ),
  agentUpgradeFailurePct: integer(
    "HOLDFAST_AGENT_UPGRADE_FAILURE_PCT",
    "Percent of the machines begun with that may fail before the upgrade halts; the first one may not",
    2,
  ),
  agentUpgradeAtOnce: integer("HOLDFAST_AGENT_UPGRADE_AT_ONCE", "Agents that are upgraded at a time", 20),
  agentCode: text(
    "HOLDFAST_AGENT_CODE",
    "Directory of the agent that this controller ships, made by agent/bundle.ts; empty to make it of its own checkout",
    "",
  ),
  allowEgress: list(
    "HOLDFAST_ALLOW_EGRESS",
    "Networks (CIDRs) that are not public and that URLs of users, such as webhooks, may lead to all the same",
  ),
  logLevel: text("HOLDFAST_LOG_LEVEL", "debug, info, warn or error", "info"),
} as const;

export type ControllerConfig = ReturnType<typeof readControllerConfig>;

/** Throws with all problems together. */
export function readControllerConfig(environment: Readonly<Record<string, string | undefined>>) {
  return readConfig(settings, environment);
}
