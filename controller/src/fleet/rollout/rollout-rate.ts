import type { FleetSettings } from "../fleet-settings.ts";

/** Speed and caution of a rollout. */
export interface RolloutRate {
  /** Percent of the machines upgraded after each stage, rising to 100, after a stage with a single machine. */
  readonly shares: readonly number[];
  /** Time for which a stage is observed before the next one. */
  readonly soakMs: number;
  /** Percent of the upgraded machines whose failure halts the rollout; the first machine must not fail at all. */
  readonly failurePct: number;
  /** Number of machines upgraded concurrently. */
  readonly atOnce: number;
}

type Settings = Pick<
  FleetSettings,
  "agentUpgrade" | "agentUpgradeShares" | "agentUpgradeSoakS" | "agentUpgradeFailurePct" | "agentUpgradeAtOnce"
>;

/** The rate from the settings; undefined if upgrades are off. Throws for invalid settings. */
export function rolloutRateOf(settings: Settings): RolloutRate | undefined {
  const { agentUpgrade, agentUpgradeShares, agentUpgradeSoakS, agentUpgradeFailurePct, agentUpgradeAtOnce } = settings;
  if (agentUpgrade !== "on" && agentUpgrade !== "off") {
    throw new Error(`HOLDFAST_AGENT_UPGRADE is on or off, not ${agentUpgrade}`);
  }
  const shares = agentUpgradeShares.map(Number);
  const rising = shares.every((share, at) => share > (shares[at - 1] ?? 0) && share <= 100);
  if (!rising || shares.at(-1) !== 100) {
    throw new Error("HOLDFAST_AGENT_UPGRADE_SHARES are percents that rise to 100, such as 5,25,100");
  }
  if (agentUpgrade === "off") return undefined;
  return {
    shares,
    soakMs: agentUpgradeSoakS * 1_000,
    failurePct: agentUpgradeFailurePct,
    atOnce: Math.max(1, agentUpgradeAtOnce),
  };
}
