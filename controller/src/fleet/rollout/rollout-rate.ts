import type { FleetSettings } from "../fleet-settings.ts";

/** Stages, observation time, failure limit and concurrency of a rollout. */
export interface RolloutRate {
  /**
   * Percent of the machines that are upgraded after each stage, rising to 100. A stage with a single machine precedes.
   */
  readonly shares: readonly number[];
  /** Time for which a stage is observed before the next one. */
  readonly soakMs: number;
  /**
   * Percent of the upgraded machines above which failures halt the rollout; a failure of the first machine halts it.
   */
  readonly failurePct: number;
  /** Maximum number of machines that are upgraded concurrently. */
  readonly concurrency: number;
}

type Settings = Pick<
  FleetSettings,
  "agentUpgrade" | "agentUpgradeShares" | "agentUpgradeSoakS" | "agentUpgradeFailurePct" | "agentUpgradeConcurrency"
>;

/** The rate from the settings; undefined if upgrades are off. Throws for invalid settings. */
export function rolloutRateOf(settings: Settings): RolloutRate | undefined {
  const { agentUpgrade, agentUpgradeShares, agentUpgradeSoakS, agentUpgradeFailurePct, agentUpgradeConcurrency } =
    settings;
  if (agentUpgrade !== "on" && agentUpgrade !== "off") {
    throw new Error(`HOLDFAST_AGENT_UPGRADE must be on or off, not ${agentUpgrade}`);
  }
  const shares = agentUpgradeShares.map(Number);
  const rising = shares.every((share, at) => share > (shares[at - 1] ?? 0) && share <= 100);
  if (!rising || shares.at(-1) !== 100) {
    throw new Error("HOLDFAST_AGENT_UPGRADE_SHARES must be percents that rise to 100, such as 5,25,100");
  }
  if (agentUpgrade === "off") return undefined;
  return {
    shares,
    soakMs: agentUpgradeSoakS * 1_000,
    failurePct: agentUpgradeFailurePct,
    concurrency: Math.max(1, agentUpgradeConcurrency),
  };
}
