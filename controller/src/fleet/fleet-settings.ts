import { integer, list, text, type ValuesOf } from "@holdfast/common/config.ts";
import { providerSettings } from "@holdfast/compute/provider-settings.ts";

/** Hosts, machines, their names and their agents. */
export const fleetSettings = {
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
  ...providerSettings,
  vmPlans: list(
    "HOLDFAST_VM_PLANS",
    "Plans that are offered as virtual machines besides, each as <plan>-vm, for hosts that can run them, such as tier-4,tier-8",
    "",
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
  dnsServers: list("HOLDFAST_DNS_SERVERS", "host:port of every authoritative DNS server"),
  sampleIntervalMs: integer("HOLDFAST_SAMPLE_INTERVAL_MS", "Milliseconds between two samples of a machine", 15_000),
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
} as const;

export type FleetSettings = ValuesOf<typeof fleetSettings>;
