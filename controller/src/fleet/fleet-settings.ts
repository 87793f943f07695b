import { integer, list, text, type ValuesOf } from "@holdfast/common/config.ts";
import { providerSettings } from "@holdfast/compute/provider-settings.ts";

/** Settings of hosts, machines, DNS names and agents. */
export const fleetSettings = {
  agentListen: list(
    "HOLDFAST_AGENT_LISTEN",
    "host:port of each listener for agents, DNS servers and other controllers",
    "127.0.0.1:8444",
  ),
  agentAdvertise: text("HOLDFAST_AGENT_ADVERTISE", "host:port that agents dial; empty: the first listener", ""),
  domain: text("HOLDFAST_DOMAIN", "Origin of the DNS zone of service names", "local.holdfast.test"),
  ...providerSettings,
  vmPlans: list(
    "HOLDFAST_VM_PLANS",
    "Plans that are also offered as virtual machines, each as <plan>-vm, on hosts that can run them, such as tier-4,tier-8",
    "",
  ),
  memoryOvercommit: integer(
    "HOLDFAST_MEMORY_OVERCOMMIT",
    "Reservable memory of a host as a multiple of its memory; on the controllers' own host with the process provider only free memory counts",
    2,
  ),
  diskOvercommit: integer(
    "HOLDFAST_DISK_OVERCOMMIT",
    "Reservable disk of a host, and of its pools for roots, as a multiple of their size (disks are sparse); 0: only free space counts",
    0,
  ),
  hostId: text("HOLDFAST_HOST_ID", "Name of the controllers' own host", "local"),
  zone: text("HOLDFAST_ZONE", "Zone of the controllers' own host", "local"),
  warmPoolMin: integer(
    "HOLDFAST_WAITING_MACHINES",
    "Minimum number of PostgreSQL machines in the warm pool; each uses 40 MB of memory, and a host without capacity has none",
    2,
  ),
  warmPoolMax: integer(
    "HOLDFAST_WAITING_MACHINES_MAX",
    "Maximum size of the warm pool, which follows the largest burst of new machines within the last hour; 0 disables it",
    20,
  ),
  dnsServers: list("HOLDFAST_DNS_SERVERS", "host:port of every authoritative DNS server"),
  sampleIntervalMs: integer("HOLDFAST_SAMPLE_INTERVAL_MS", "Milliseconds between samples of a machine", 15_000),
  agentUpgrade: text("HOLDFAST_AGENT_UPGRADE", "on, or off: agents of running machines are not upgraded", "on"),
  agentUpgradeShares: list(
    "HOLDFAST_AGENT_UPGRADE_SHARES",
    "Percent of the machines whose agents have the new release after each stage; a stage with a single machine precedes them",
    "5,25,100",
  ),
  agentUpgradeSoakS: integer(
    "HOLDFAST_AGENT_UPGRADE_SOAK_S",
    "Seconds that upgraded machines are observed before the next stage",
    300,
  ),
  agentUpgradeFailurePct: integer(
    "HOLDFAST_AGENT_UPGRADE_FAILURE_PCT",
    "Percent of the upgraded machines that may fail before the rollout halts; the first machine must not fail",
    2,
  ),
  agentUpgradeConcurrency: integer(
    "HOLDFAST_AGENT_UPGRADE_AT_ONCE",
    "Maximum number of agents that are upgraded concurrently",
    20,
  ),
  agentCode: text(
    "HOLDFAST_AGENT_CODE",
    "Directory of the agent bundle that this controller ships, built by agent/bundle.ts; empty: built from the controller's checkout",
    "",
  ),
} as const;

export type FleetSettings = ValuesOf<typeof fleetSettings>;
